/* The functions of FMI 3.0: model exchange and co-simulation. Unsupported functions are in
 * fmi3_absent.c. */
#include "fmi3.h"

#include <stdlib.h>
#include <string.h>

#include "model.h"

typedef struct {
    Model model;
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log;
} Component;

static void logged(fmi3InstanceEnvironment environment, fmi3LogMessageCallback log, int status, const char *message)
{
    if (log) {
        log(environment, (fmi3Status)status, "logStatusError", message);
    }
}

/* The status of a function of the model; the reason of a failure is logged. */
static fmi3Status done(Component *c, int status)
{
    if (status) {
        logged(c->environment, c->log, status, c->model.message);
    }
    return (fmi3Status)status;
}

/* Begin a function: the instance, if there is one and the function is allowed in its mode. */
#define ENTER(modes, name)                    \
    Component *c = instance;                  \
    if (!c) {                                 \
        return fmi3Error;                     \
    }                                         \
    if (model_mode(&c->model, modes, name)) { \
        return done(c, MODEL_ERROR);          \
    }

fmi3Status fmi3_refused(fmi3Instance instance, const char *message)
{
    Component *c = instance;
    if (c) {
        logged(c->environment, c->log, MODEL_ERROR, message);
    }
    return fmi3Error;
}

static fmi3Instance instantiated(fmi3String token, int cosimulation, fmi3InstanceEnvironment environment,
                                 fmi3LogMessageCallback log)
{
    Component *c;
    if (!token || strcmp(token, ROBOT_TOKEN) != 0) {
        logged(environment, log, MODEL_ERROR, "the instantiation token does not match this FMU");
        return NULL;
    }
    c = calloc(1, sizeof *c);
    if (!c) {
        logged(environment, log, MODEL_ERROR, "out of memory");
        return NULL;
    }
    c->environment = environment;
    c->log = log;
    c->model.cosimulation = cosimulation;
    model_reset(&c->model);
    return c;
}

FMI3(const char *, fmi3GetVersion, (void))
{
    return "3.0";
}

FMI3(fmi3Status, fmi3SetDebugLogging,
     (fmi3Instance instance, fmi3Boolean on, size_t count, const fmi3String categories[]))
{
    (void)on;
    (void)count;
    (void)categories;
    return instance ? fmi3OK : fmi3Error; /* only errors are logged, always */
}

FMI3(fmi3Instance, fmi3InstantiateModelExchange,
     (fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
      fmi3InstanceEnvironment environment, fmi3LogMessageCallback log))
{
    (void)name;
    (void)resources;
    (void)visible;
    (void)logging;
    return instantiated(token, 0, environment, log);
}

FMI3(fmi3Instance, fmi3InstantiateCoSimulation,
     (fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
      fmi3Boolean events, fmi3Boolean early_return, const fmi3ValueReference intermediate[], size_t intermediate_count,
      fmi3InstanceEnvironment environment, fmi3LogMessageCallback log, fmi3IntermediateUpdateCallback update))
{
    (void)name;
    (void)resources;
    (void)visible;
    (void)logging;
    (void)early_return;
    (void)intermediate;
    (void)update;
    if (events || intermediate_count) {
        logged(environment, log, MODEL_ERROR, "this FMU has no event mode and no intermediate updates");
        return NULL;
    }
    return instantiated(token, 1, environment, log);
}

FMI3(fmi3Instance, fmi3InstantiateScheduledExecution,
     (fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging,
      fmi3InstanceEnvironment environment, fmi3LogMessageCallback log, fmi3ClockUpdateCallback update,
      fmi3LockPreemptionCallback lock, fmi3UnlockPreemptionCallback unlock))
{
    (void)name;
    (void)token;
    (void)resources;
    (void)visible;
    (void)logging;
    (void)update;
    (void)lock;
    (void)unlock;
    logged(environment, log, MODEL_ERROR, "this FMU has no scheduled execution");
    return NULL;
}

FMI3(void, fmi3FreeInstance, (fmi3Instance instance))
{
    free(instance);
}

FMI3(fmi3Status, fmi3EnterInitializationMode,
     (fmi3Instance instance, fmi3Boolean tolerance_defined, fmi3Float64 tolerance, fmi3Float64 start,
      fmi3Boolean stop_defined, fmi3Float64 stop))
{
    ENTER(MODE_INSTANTIATED, "fmi3EnterInitializationMode")
    (void)tolerance_defined;
    (void)tolerance;
    if (model_experiment(&c->model, start, stop_defined, stop)) {
        return done(c, MODEL_ERROR);
    }
    c->model.state.mode = MODE_INITIALISATION;
    return fmi3OK;
}

FMI3(fmi3Status, fmi3ExitInitializationMode, (fmi3Instance instance))
{
    ENTER(MODE_INITIALISATION, "fmi3ExitInitializationMode")
    return done(c, model_initialised(&c->model));
}

FMI3(fmi3Status, fmi3EnterEventMode, (fmi3Instance instance))
{
    ENTER(MODE_CONTINUOUS, "fmi3EnterEventMode")
    c->model.state.mode = MODE_EVENT;
    return fmi3OK;
}

FMI3(fmi3Status, fmi3Terminate, (fmi3Instance instance))
{
    ENTER(MODE_EVENT + MODE_CONTINUOUS + MODE_STEP, "fmi3Terminate")
    c->model.state.mode = MODE_TERMINATED;
    return fmi3OK;
}

FMI3(fmi3Status, fmi3Reset, (fmi3Instance instance))
{
    ENTER(MODE_ALL, "fmi3Reset")
    model_reset(&c->model);
    return fmi3OK;
}

FMI3(fmi3Status, fmi3GetFloat64,
     (fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3Float64 values[],
      size_t value_count))
{
    ENTER(MODE_ALL, "fmi3GetFloat64")
    if (value_count != count) {
        return fmi3_refused(instance, "fmi3GetFloat64: all variables are scalars");
    }
    return done(c, model_get(&c->model, references, count, values));
}

FMI3(fmi3Status, fmi3SetFloat64,
     (fmi3Instance instance, const fmi3ValueReference references[], size_t count, const fmi3Float64 values[],
      size_t value_count))
{
    ENTER(MODE_ALL, "fmi3SetFloat64")
    if (value_count != count) {
        return fmi3_refused(instance, "fmi3SetFloat64: all variables are scalars");
    }
    return done(c, model_set(&c->model, references, count, values));
}

FMI3(fmi3Status, fmi3GetFMUState, (fmi3Instance instance, fmi3FMUState *state))
{
    ENTER(MODE_ALL, "fmi3GetFMUState")
    if (!*state) {
        *state = malloc(sizeof(ModelState));
    }
    if (!*state) {
        return fmi3_refused(instance, "out of memory");
    }
    memcpy(*state, &c->model.state, sizeof(ModelState));
    return fmi3OK;
}

FMI3(fmi3Status, fmi3SetFMUState, (fmi3Instance instance, fmi3FMUState state))
{
    ENTER(MODE_ALL, "fmi3SetFMUState")
    return state ? done(c, model_restore(&c->model, state)) : fmi3_refused(instance, "there is no saved state");
}

FMI3(fmi3Status, fmi3FreeFMUState, (fmi3Instance instance, fmi3FMUState *state))
{
    if (!instance) {
        return fmi3Error;
    }
    if (state) {
        free(*state);
        *state = NULL;
    }
    return fmi3OK;
}

FMI3(fmi3Status, fmi3SerializedFMUStateSize, (fmi3Instance instance, fmi3FMUState state, size_t *size))
{
    (void)state;
    *size = MODEL_BYTES;
    return instance ? fmi3OK : fmi3Error;
}

FMI3(fmi3Status, fmi3SerializeFMUState, (fmi3Instance instance, fmi3FMUState state, fmi3Byte bytes[], size_t size))
{
    if (!instance || !state || size < MODEL_BYTES) {
        return fmi3_refused(instance, "fmi3SerializeFMUState: no state, or too few bytes");
    }
    model_pack(state, (unsigned char *)bytes);
    return fmi3OK;
}

FMI3(fmi3Status, fmi3DeserializeFMUState,
     (fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3FMUState *state))
{
    ModelState saved;
    if (!instance || size != MODEL_BYTES || model_unpack(&saved, bytes)) {
        return fmi3_refused(instance, "fmi3DeserializeFMUState: these bytes are not a state of this FMU");
    }
    if (!*state) {
        *state = malloc(sizeof(ModelState));
    }
    if (!*state) {
        return fmi3_refused(instance, "out of memory");
    }
    memcpy(*state, &saved, sizeof saved);
    return fmi3OK;
}

FMI3(fmi3Status, fmi3GetDirectionalDerivative,
     (fmi3Instance instance, const fmi3ValueReference unknowns[], size_t unknown_count,
      const fmi3ValueReference knowns[], size_t known_count, const fmi3Float64 seed[], size_t seed_count,
      fmi3Float64 sensitivity[], size_t sensitivity_count))
{
    ENTER(MODE_ALL - MODE_INSTANTIATED, "fmi3GetDirectionalDerivative")
    if (seed_count != known_count || sensitivity_count != unknown_count) {
        return fmi3_refused(instance, "fmi3GetDirectionalDerivative: all variables are scalars");
    }
    return done(c, model_tangent(&c->model, unknowns, unknown_count, knowns, known_count, seed, sensitivity));
}

FMI3(fmi3Status, fmi3GetAdjointDerivative,
     (fmi3Instance instance, const fmi3ValueReference unknowns[], size_t unknown_count,
      const fmi3ValueReference knowns[], size_t known_count, const fmi3Float64 seed[], size_t seed_count,
      fmi3Float64 sensitivity[], size_t sensitivity_count))
{
    ENTER(MODE_ALL - MODE_INSTANTIATED, "fmi3GetAdjointDerivative")
    if (seed_count != unknown_count || sensitivity_count != known_count) {
        return fmi3_refused(instance, "fmi3GetAdjointDerivative: all variables are scalars");
    }
    return done(c, model_adjoint(&c->model, unknowns, unknown_count, knowns, known_count, seed, sensitivity));
}

FMI3(fmi3Status, fmi3UpdateDiscreteStates,
     (fmi3Instance instance, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals_changed,
      fmi3Boolean *states_changed, fmi3Boolean *next_defined, fmi3Float64 *next))
{
    ENTER(MODE_EVENT, "fmi3UpdateDiscreteStates")
    *again = *terminate = *nominals_changed = *states_changed = *next_defined = false;
    *next = 0.0;
    return fmi3OK;
}

FMI3(fmi3Status, fmi3EnterContinuousTimeMode, (fmi3Instance instance))
{
    ENTER(MODE_EVENT, "fmi3EnterContinuousTimeMode")
    c->model.state.mode = MODE_CONTINUOUS;
    return fmi3OK;
}

FMI3(fmi3Status, fmi3CompletedIntegratorStep,
     (fmi3Instance instance, fmi3Boolean final, fmi3Boolean *event, fmi3Boolean *terminate))
{
    ENTER(MODE_CONTINUOUS, "fmi3CompletedIntegratorStep")
    (void)final;
    *event = *terminate = false;
    return fmi3OK;
}

FMI3(fmi3Status, fmi3SetTime, (fmi3Instance instance, fmi3Float64 time))
{
    ENTER(MODE_EVENT + MODE_CONTINUOUS, "fmi3SetTime")
    return done(c, model_time(&c->model, time));
}

FMI3(fmi3Status, fmi3SetContinuousStates, (fmi3Instance instance, const fmi3Float64 states[], size_t count))
{
    ENTER(MODE_CONTINUOUS, "fmi3SetContinuousStates")
    return done(c, model_set_states(&c->model, states, count));
}

FMI3(fmi3Status, fmi3GetContinuousStateDerivatives, (fmi3Instance instance, fmi3Float64 rates[], size_t count))
{
    ENTER(MODE_INITIALISATION + MODE_EVENT + MODE_CONTINUOUS + MODE_TERMINATED, "fmi3GetContinuousStateDerivatives")
    return done(c, model_get_rates(&c->model, rates, count));
}

FMI3(fmi3Status, fmi3GetContinuousStates, (fmi3Instance instance, fmi3Float64 states[], size_t count))
{
    ENTER(MODE_INITIALISATION + MODE_EVENT + MODE_CONTINUOUS + MODE_TERMINATED, "fmi3GetContinuousStates")
    return done(c, model_get_states(&c->model, states, count));
}

FMI3(fmi3Status, fmi3GetNominalsOfContinuousStates, (fmi3Instance instance, fmi3Float64 nominals[], size_t count))
{
    ENTER(MODE_ALL, "fmi3GetNominalsOfContinuousStates")
    return done(c, model_nominals(&c->model, nominals, count));
}

FMI3(fmi3Status, fmi3GetNumberOfEventIndicators, (fmi3Instance instance, size_t *count))
{
    *count = 0;
    return instance ? fmi3OK : fmi3Error;
}

FMI3(fmi3Status, fmi3GetNumberOfContinuousStates, (fmi3Instance instance, size_t *count))
{
    *count = ROBOT_NQ + ROBOT_NV;
    return instance ? fmi3OK : fmi3Error;
}

FMI3(fmi3Status, fmi3DoStep,
     (fmi3Instance instance, fmi3Float64 point, fmi3Float64 length, fmi3Boolean final, fmi3Boolean *event,
      fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last))
{
    int status;
    ENTER(MODE_STEP, "fmi3DoStep")
    (void)final;
    status = model_step(&c->model, point, length);
    *event = *terminate = *early = false;
    *last = c->model.state.values[0];
    return done(c, status);
}
