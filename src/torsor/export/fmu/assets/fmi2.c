/* The functions of FMI 2.0: model exchange and co-simulation. Variables are Real; there are no events. */
#include "fmi2.h"

#include <string.h>

#include "model.h"

typedef struct {
    Model model;
    fmi2CallbackFunctions call;
    char *name; /* after this structure, in the same memory block */
} Component;

static void logged(const fmi2CallbackFunctions *call, fmi2String name, int status, const char *message)
{
    if (call->logger) {
        call->logger(call->componentEnvironment, name, (fmi2Status)status, "logStatusError", "%s", message);
    }
}

/* The status of a function of the model; the reason of a failure is logged. */
static fmi2Status done(Component *c, int status)
{
    if (status) {
        logged(&c->call, c->name, status, c->model.message);
    }
    return (fmi2Status)status;
}

/* Begin a function: the instance, if there is one and the function is allowed in its mode. */
#define ENTER(modes, function)                    \
    Component *c = instance;                      \
    if (!c) {                                     \
        return fmi2Error;                         \
    }                                             \
    if (model_mode(&c->model, modes, function)) { \
        return done(c, MODEL_ERROR);              \
    }

/* End a function that is not supported according to the model description. */
static fmi2Status unsupported(fmi2Component instance, const char *message)
{
    Component *c = instance;
    if (c) {
        logged(&c->call, c->name, MODEL_ERROR, message);
    }
    return fmi2Error;
}

FMI2(const char *, fmi2GetTypesPlatform, (void))
{
    return "default";
}

FMI2(const char *, fmi2GetVersion, (void))
{
    return "2.0";
}

FMI2(fmi2Status, fmi2SetDebugLogging,
     (fmi2Component instance, fmi2Boolean on, size_t count, const fmi2String categories[]))
{
    (void)on;
    (void)count;
    (void)categories;
    return instance ? fmi2OK : fmi2Error; /* only errors are logged, always */
}

FMI2(fmi2Component, fmi2Instantiate,
     (fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources, const fmi2CallbackFunctions *call,
      fmi2Boolean visible, fmi2Boolean logging))
{
    Component *c;
    (void)resources;
    (void)visible;
    (void)logging;
    if (!call || !call->allocateMemory || !call->freeMemory || !name) {
        return NULL;
    }
    if (!guid || strcmp(guid, ROBOT_TOKEN) != 0) {
        logged(call, name, MODEL_ERROR, "the GUID does not match this FMU");
        return NULL;
    }
    c = call->allocateMemory(1, sizeof *c + strlen(name) + 1);
    if (!c) {
        logged(call, name, MODEL_ERROR, "out of memory");
        return NULL;
    }
    memset(c, 0, sizeof *c);
    c->call = *call;
    c->name = (char *)(c + 1);
    strcpy(c->name, name);
    c->model.cosimulation = type == fmi2CoSimulation;
    model_reset(&c->model);
    return c;
}

FMI2(void, fmi2FreeInstance, (fmi2Component instance))
{
    Component *c = instance;
    if (c) {
        c->call.freeMemory(c);
    }
}

FMI2(fmi2Status, fmi2SetupExperiment,
     (fmi2Component instance, fmi2Boolean tolerance_defined, fmi2Real tolerance, fmi2Real start,
      fmi2Boolean stop_defined, fmi2Real stop))
{
    ENTER(MODE_INSTANTIATED, "fmi2SetupExperiment")
    (void)tolerance_defined;
    (void)tolerance;
    return done(c, model_experiment(&c->model, start, stop_defined, stop));
}

FMI2(fmi2Status, fmi2EnterInitializationMode, (fmi2Component instance))
{
    ENTER(MODE_INSTANTIATED, "fmi2EnterInitializationMode")
    c->model.state.mode = MODE_INITIALISATION;
    return fmi2OK;
}

FMI2(fmi2Status, fmi2ExitInitializationMode, (fmi2Component instance))
{
    ENTER(MODE_INITIALISATION, "fmi2ExitInitializationMode")
    return done(c, model_initialised(&c->model));
}

FMI2(fmi2Status, fmi2Terminate, (fmi2Component instance))
{
    ENTER(MODE_EVENT + MODE_CONTINUOUS + MODE_STEP, "fmi2Terminate")
    c->model.state.mode = MODE_TERMINATED;
    return fmi2OK;
}

FMI2(fmi2Status, fmi2Reset, (fmi2Component instance))
{
    ENTER(MODE_ALL, "fmi2Reset")
    model_reset(&c->model);
    return fmi2OK;
}

FMI2(fmi2Status, fmi2GetReal,
     (fmi2Component instance, const fmi2ValueReference references[], size_t count, fmi2Real values[]))
{
    ENTER(MODE_ALL, "fmi2GetReal")
    return done(c, model_get(&c->model, references, count, values));
}

FMI2(fmi2Status, fmi2SetReal,
     (fmi2Component instance, const fmi2ValueReference references[], size_t count, const fmi2Real values[]))
{
    ENTER(MODE_ALL, "fmi2SetReal")
    return done(c, model_set(&c->model, references, count, values));
}

/* There are no variables of other types. */
#define NO_VARIABLES(Type)                                                                                         \
    FMI2(fmi2Status, fmi2Get##Type,                                                                                \
         (fmi2Component instance, const fmi2ValueReference references[], size_t count, fmi2##Type values[]))       \
    {                                                                                                              \
        (void)references;                                                                                          \
        (void)values;                                                                                              \
        return count ? unsupported(instance, "fmi2Get" #Type ": there is no variable of this type") : fmi2OK;      \
    }                                                                                                              \
    FMI2(fmi2Status, fmi2Set##Type,                                                                                \
         (fmi2Component instance, const fmi2ValueReference references[], size_t count, const fmi2##Type values[])) \
    {                                                                                                              \
        (void)references;                                                                                          \
        (void)values;                                                                                              \
        return count ? unsupported(instance, "fmi2Set" #Type ": there is no variable of this type") : fmi2OK;      \
    }

NO_VARIABLES(Integer)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)

FMI2(fmi2Status, fmi2GetFMUstate, (fmi2Component instance, fmi2FMUstate *state))
{
    ENTER(MODE_ALL, "fmi2GetFMUstate")
    if (!*state) {
        *state = c->call.allocateMemory(1, sizeof(ModelState));
    }
    if (!*state) {
        return unsupported(instance, "out of memory");
    }
    memcpy(*state, &c->model.state, sizeof(ModelState));
    return fmi2OK;
}

FMI2(fmi2Status, fmi2SetFMUstate, (fmi2Component instance, fmi2FMUstate state))
{
    ENTER(MODE_ALL, "fmi2SetFMUstate")
    return state ? done(c, model_restore(&c->model, state)) : unsupported(instance, "there is no saved state");
}

FMI2(fmi2Status, fmi2FreeFMUstate, (fmi2Component instance, fmi2FMUstate *state))
{
    ENTER(MODE_ALL, "fmi2FreeFMUstate")
    if (state && *state) {
        c->call.freeMemory(*state);
        *state = NULL;
    }
    return fmi2OK;
}

FMI2(fmi2Status, fmi2SerializedFMUstateSize, (fmi2Component instance, fmi2FMUstate state, size_t *size))
{
    (void)state;
    *size = MODEL_BYTES;
    return instance ? fmi2OK : fmi2Error;
}

FMI2(fmi2Status, fmi2SerializeFMUstate, (fmi2Component instance, fmi2FMUstate state, fmi2Byte bytes[], size_t size))
{
    if (!instance || !state || size < MODEL_BYTES) {
        return unsupported(instance, "fmi2SerializeFMUstate: no state, or too few bytes");
    }
    model_pack(state, (unsigned char *)bytes);
    return fmi2OK;
}

FMI2(fmi2Status, fmi2DeSerializeFMUstate,
     (fmi2Component instance, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state))
{
    ModelState saved;
    ENTER(MODE_ALL, "fmi2DeSerializeFMUstate")
    if (size != MODEL_BYTES || model_unpack(&saved, (const unsigned char *)bytes)) {
        return unsupported(instance, "fmi2DeSerializeFMUstate: these bytes are not a state of this FMU");
    }
    if (!*state) {
        *state = c->call.allocateMemory(1, sizeof(ModelState));
    }
    if (!*state) {
        return unsupported(instance, "out of memory");
    }
    memcpy(*state, &saved, sizeof saved);
    return fmi2OK;
}

FMI2(fmi2Status, fmi2GetDirectionalDerivative,
     (fmi2Component instance, const fmi2ValueReference unknowns[], size_t unknown_count,
      const fmi2ValueReference knowns[], size_t known_count, const fmi2Real seed[], fmi2Real sensitivity[]))
{
    ENTER(MODE_ALL - MODE_INSTANTIATED, "fmi2GetDirectionalDerivative")
    return done(c, model_tangent(&c->model, unknowns, unknown_count, knowns, known_count, seed, sensitivity));
}

/* Model exchange */

FMI2(fmi2Status, fmi2EnterEventMode, (fmi2Component instance))
{
    ENTER(MODE_EVENT + MODE_CONTINUOUS, "fmi2EnterEventMode")
    c->model.state.mode = MODE_EVENT;
    return fmi2OK;
}

FMI2(fmi2Status, fmi2NewDiscreteStates, (fmi2Component instance, fmi2EventInfo *info))
{
    ENTER(MODE_EVENT, "fmi2NewDiscreteStates")
    memset(info, 0, sizeof *info);
    return fmi2OK;
}

FMI2(fmi2Status, fmi2EnterContinuousTimeMode, (fmi2Component instance))
{
    ENTER(MODE_EVENT, "fmi2EnterContinuousTimeMode")
    c->model.state.mode = MODE_CONTINUOUS;
    return fmi2OK;
}

FMI2(fmi2Status, fmi2CompletedIntegratorStep,
     (fmi2Component instance, fmi2Boolean final, fmi2Boolean *event, fmi2Boolean *terminate))
{
    ENTER(MODE_CONTINUOUS, "fmi2CompletedIntegratorStep")
    (void)final;
    *event = *terminate = fmi2False;
    return fmi2OK;
}

FMI2(fmi2Status, fmi2SetTime, (fmi2Component instance, fmi2Real time))
{
    ENTER(MODE_EVENT + MODE_CONTINUOUS, "fmi2SetTime")
    return done(c, model_time(&c->model, time));
}

FMI2(fmi2Status, fmi2SetContinuousStates, (fmi2Component instance, const fmi2Real states[], size_t count))
{
    ENTER(MODE_CONTINUOUS, "fmi2SetContinuousStates")
    return done(c, model_set_states(&c->model, states, count));
}

FMI2(fmi2Status, fmi2GetDerivatives, (fmi2Component instance, fmi2Real rates[], size_t count))
{
    ENTER(MODE_INITIALISATION + MODE_EVENT + MODE_CONTINUOUS + MODE_TERMINATED, "fmi2GetDerivatives")
    return done(c, model_get_rates(&c->model, rates, count));
}

FMI2(fmi2Status, fmi2GetEventIndicators, (fmi2Component instance, fmi2Real indicators[], size_t count))
{
    (void)indicators;
    return count ? unsupported(instance, "fmi2GetEventIndicators: there are none") : fmi2OK;
}

FMI2(fmi2Status, fmi2GetContinuousStates, (fmi2Component instance, fmi2Real states[], size_t count))
{
    ENTER(MODE_INITIALISATION + MODE_EVENT + MODE_CONTINUOUS + MODE_TERMINATED, "fmi2GetContinuousStates")
    return done(c, model_get_states(&c->model, states, count));
}

FMI2(fmi2Status, fmi2GetNominalsOfContinuousStates, (fmi2Component instance, fmi2Real nominals[], size_t count))
{
    ENTER(MODE_ALL, "fmi2GetNominalsOfContinuousStates")
    return done(c, model_nominals(&c->model, nominals, count));
}

/* Co-simulation */

FMI2(fmi2Status, fmi2SetRealInputDerivatives,
     (fmi2Component instance, const fmi2ValueReference references[], size_t count, const fmi2Integer orders[],
      const fmi2Real values[]))
{
    (void)references;
    (void)orders;
    (void)values;
    return count ? unsupported(instance, "fmi2SetRealInputDerivatives: inputs are constant during a step") : fmi2OK;
}

FMI2(fmi2Status, fmi2GetRealOutputDerivatives,
     (fmi2Component instance, const fmi2ValueReference references[], size_t count, const fmi2Integer orders[],
      fmi2Real values[]))
{
    (void)references;
    (void)orders;
    (void)values;
    return count ? unsupported(instance, "fmi2GetRealOutputDerivatives: there are none") : fmi2OK;
}

FMI2(fmi2Status, fmi2DoStep, (fmi2Component instance, fmi2Real point, fmi2Real length, fmi2Boolean final))
{
    ENTER(MODE_STEP, "fmi2DoStep")
    (void)final;
    return done(c, model_step(&c->model, point, length));
}

FMI2(fmi2Status, fmi2CancelStep, (fmi2Component instance))
{
    return unsupported(instance, "fmi2CancelStep: steps do not run in the background");
}

FMI2(fmi2Status, fmi2GetStatus, (fmi2Component instance, const fmi2StatusKind kind, fmi2Status *value))
{
    (void)kind;
    (void)value;
    return unsupported(instance, "fmi2GetStatus: steps do not run in the background");
}

FMI2(fmi2Status, fmi2GetRealStatus, (fmi2Component instance, const fmi2StatusKind kind, fmi2Real *value))
{
    ENTER(MODE_STEP + MODE_TERMINATED, "fmi2GetRealStatus")
    if (kind != fmi2LastSuccessfulTime) {
        return unsupported(instance, "fmi2GetRealStatus: only the last successful time is available");
    }
    *value = c->model.state.values[0];
    return fmi2OK;
}

FMI2(fmi2Status, fmi2GetIntegerStatus, (fmi2Component instance, const fmi2StatusKind kind, fmi2Integer *value))
{
    (void)kind;
    (void)value;
    return unsupported(instance, "fmi2GetIntegerStatus: there is none");
}

FMI2(fmi2Status, fmi2GetBooleanStatus, (fmi2Component instance, const fmi2StatusKind kind, fmi2Boolean *value))
{
    ENTER(MODE_STEP + MODE_TERMINATED, "fmi2GetBooleanStatus")
    if (kind != fmi2Terminated) {
        return unsupported(instance, "fmi2GetBooleanStatus: only the end of the simulation is available");
    }
    *value = fmi2False;
    return fmi2OK;
}

FMI2(fmi2Status, fmi2GetStringStatus, (fmi2Component instance, const fmi2StatusKind kind, fmi2String *value))
{
    (void)kind;
    (void)value;
    return unsupported(instance, "fmi2GetStringStatus: there is none");
}
