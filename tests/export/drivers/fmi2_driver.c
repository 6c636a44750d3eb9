/* An importer of FMI 2 with the two-link arm: co-simulation and model exchange, and errors. All memory of the FMU comes
 * from the callback, which counts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2.h"
#include "robot.h"

#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition)) {                                           \
            printf("line %d: %s\n", __LINE__, #condition);            \
            return 1;                                                 \
        }                                                             \
    } while (0)

static int allocations, messages;

static void *allocate(size_t count, size_t size)
{
    allocations++;
    return calloc(count, size);
}

static void record(fmi2ComponentEnvironment environment, fmi2String name, fmi2Status status, fmi2String category,
                   fmi2String message, ...)
{
    if (environment == &messages && strlen(name) == 3 && status >= fmi2Discard && category && message) {
        messages++;
    }
}

fmi2Component fmi2Instantiate(fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *, fmi2Boolean,
                              fmi2Boolean);
void fmi2FreeInstance(fmi2Component);
fmi2Status fmi2SetupExperiment(fmi2Component, fmi2Boolean, fmi2Real, fmi2Real, fmi2Boolean, fmi2Real);
fmi2Status fmi2EnterInitializationMode(fmi2Component);
fmi2Status fmi2ExitInitializationMode(fmi2Component);
fmi2Status fmi2GetReal(fmi2Component, const fmi2ValueReference[], size_t, fmi2Real[]);
fmi2Status fmi2SetReal(fmi2Component, const fmi2ValueReference[], size_t, const fmi2Real[]);
fmi2Status fmi2DoStep(fmi2Component, fmi2Real, fmi2Real, fmi2Boolean);
fmi2Status fmi2GetRealStatus(fmi2Component, const fmi2StatusKind, fmi2Real *);
fmi2Status fmi2GetBooleanStatus(fmi2Component, const fmi2StatusKind, fmi2Boolean *);
fmi2Status fmi2GetDirectionalDerivative(fmi2Component, const fmi2ValueReference[], size_t, const fmi2ValueReference[],
                                        size_t, const fmi2Real[], fmi2Real[]);
fmi2Status fmi2GetFMUstate(fmi2Component, fmi2FMUstate *);
fmi2Status fmi2SetFMUstate(fmi2Component, fmi2FMUstate);
fmi2Status fmi2FreeFMUstate(fmi2Component, fmi2FMUstate *);
fmi2Status fmi2NewDiscreteStates(fmi2Component, fmi2EventInfo *);
fmi2Status fmi2EnterContinuousTimeMode(fmi2Component);
fmi2Status fmi2GetDerivatives(fmi2Component, fmi2Real[], size_t);
fmi2Status fmi2Terminate(fmi2Component);

int main(void)
{
    fmi2CallbackFunctions call;
    fmi2Component c, m;
    fmi2EventInfo info;
    fmi2FMUstate state = NULL;
    fmi2Real values[ROBOT_VARIABLES], seed = 1.0;
    fmi2Boolean ended = fmi2True;
    fmi2ValueReference all[ROBOT_VARIABLES], tau = ROBOT_INPUTS, beyond = ROBOT_VARIABLES;
    size_t i;
    call.logger = record;
    call.allocateMemory = allocate;
    call.freeMemory = free;
    call.stepFinished = NULL;
    call.componentEnvironment = &messages;
    for (i = 0; i < ROBOT_VARIABLES; i++) {
        all[i] = (fmi2ValueReference)i;
    }
    CHECK(!fmi2Instantiate("one", fmi2CoSimulation, "another", "", &call, fmi2False, fmi2False) && messages == 1);
    CHECK(!fmi2Instantiate("one", fmi2CoSimulation, ROBOT_TOKEN, "", NULL, fmi2False, fmi2False));
    c = fmi2Instantiate("one", fmi2CoSimulation, ROBOT_TOKEN, "", &call, fmi2False, fmi2False);
    m = fmi2Instantiate("two", fmi2ModelExchange, ROBOT_TOKEN, "", &call, fmi2False, fmi2False);
    CHECK(c && m && allocations == 2);
    CHECK(fmi2SetupExperiment(c, fmi2False, 0.0, 2.0, fmi2False, 0.0) == fmi2OK);
    CHECK(fmi2EnterInitializationMode(c) == fmi2OK && fmi2SetReal(c, &tau, 1, &seed) == fmi2OK);
    CHECK(fmi2ExitInitializationMode(c) == fmi2OK && fmi2ExitInitializationMode(c) == fmi2Error);
    CHECK(fmi2DoStep(c, 2.0, 0.0123, fmi2True) == fmi2OK && fmi2DoStep(c, 3.0, 0.1, fmi2True) == fmi2Error);
    CHECK(fmi2GetRealStatus(c, fmi2LastSuccessfulTime, values) == fmi2OK && fabs(values[0] - 2.0123) < 1e-14);
    CHECK(fmi2GetBooleanStatus(c, fmi2Terminated, &ended) == fmi2OK && !ended);
    CHECK(fmi2GetReal(c, all, ROBOT_VARIABLES, values) == fmi2OK && values[ROBOT_Q] != 0.0);
    CHECK(fmi2GetReal(c, &beyond, 1, values) == fmi2Error && fmi2SetReal(c, all, 1, &seed) == fmi2Error);
    CHECK(fmi2GetDirectionalDerivative(c, all + ROBOT_Q, ROBOT_VARIABLES - ROBOT_Q, &tau, 1, &seed, values) == fmi2OK);
    CHECK(allocations == 2);
    CHECK(fmi2GetFMUstate(c, &state) == fmi2OK && fmi2SetFMUstate(c, state) == fmi2OK);
    CHECK(fmi2SetFMUstate(m, state) == fmi2Error && fmi2FreeFMUstate(c, &state) == fmi2OK && !state);
    CHECK(fmi2EnterInitializationMode(m) == fmi2OK && fmi2ExitInitializationMode(m) == fmi2OK);
    CHECK(fmi2NewDiscreteStates(m, &info) == fmi2OK && !info.newDiscreteStatesNeeded && !info.terminateSimulation);
    CHECK(fmi2EnterContinuousTimeMode(m) == fmi2OK && fmi2GetDerivatives(m, values, ROBOT_NQ + ROBOT_NV) == fmi2OK);
    CHECK(fmi2SetReal(m, all + ROBOT_X, 1, &seed) == fmi2Error || ROBOT_X == ROBOT_INPUTS);
    CHECK(fmi2Terminate(m) == fmi2OK && fmi2Terminate(NULL) == fmi2Error);
    fmi2FreeInstance(c);
    fmi2FreeInstance(m);
    CHECK(messages > 5);
    puts("done");
    return 0;
}
