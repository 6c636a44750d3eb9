/* All that an importer of FMI 3 may do with the two-link arm, and what it may not: every result is checked. Linked with
 * --wrap=malloc and so on, allocations are counted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi3.h"

#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition)) {                                           \
            printf("line %d: %s\n", __LINE__, #condition);            \
            return 1;                                                 \
        }                                                             \
    } while (0)

static int allocations, messages;

void *__real_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}
void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

static void record(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category, fmi3String message)
{
    if (environment == &messages && status >= fmi3Discard && category && strlen(message) > 5) {
        messages++;
    }
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String, fmi3String, fmi3String, fmi3Boolean, fmi3Boolean, fmi3Boolean,
                                         fmi3Boolean, const fmi3ValueReference[], size_t, fmi3InstanceEnvironment,
                                         fmi3LogMessageCallback, fmi3IntermediateUpdateCallback);
fmi3Instance fmi3InstantiateModelExchange(fmi3String, fmi3String, fmi3String, fmi3Boolean, fmi3Boolean,
                                          fmi3InstanceEnvironment, fmi3LogMessageCallback);
void fmi3FreeInstance(fmi3Instance);
fmi3Status fmi3EnterInitializationMode(fmi3Instance, fmi3Boolean, fmi3Float64, fmi3Float64, fmi3Boolean, fmi3Float64);
fmi3Status fmi3ExitInitializationMode(fmi3Instance);
fmi3Status fmi3GetFloat64(fmi3Instance, const fmi3ValueReference[], size_t, fmi3Float64[], size_t);
fmi3Status fmi3SetFloat64(fmi3Instance, const fmi3ValueReference[], size_t, const fmi3Float64[], size_t);
fmi3Status fmi3GetString(fmi3Instance, const fmi3ValueReference[], size_t, fmi3String[], size_t);
fmi3Status fmi3DoStep(fmi3Instance, fmi3Float64, fmi3Float64, fmi3Boolean, fmi3Boolean *, fmi3Boolean *,
                      fmi3Boolean *, fmi3Float64 *);
fmi3Status fmi3GetDirectionalDerivative(fmi3Instance, const fmi3ValueReference[], size_t, const fmi3ValueReference[],
                                        size_t, const fmi3Float64[], size_t, fmi3Float64[], size_t);
fmi3Status fmi3GetAdjointDerivative(fmi3Instance, const fmi3ValueReference[], size_t, const fmi3ValueReference[],
                                    size_t, const fmi3Float64[], size_t, fmi3Float64[], size_t);
fmi3Status fmi3GetFMUState(fmi3Instance, fmi3FMUState *);
fmi3Status fmi3SetFMUState(fmi3Instance, fmi3FMUState);
fmi3Status fmi3FreeFMUState(fmi3Instance, fmi3FMUState *);
fmi3Status fmi3SerializedFMUStateSize(fmi3Instance, fmi3FMUState, size_t *);
fmi3Status fmi3SerializeFMUState(fmi3Instance, fmi3FMUState, fmi3Byte[], size_t);
fmi3Status fmi3DeserializeFMUState(fmi3Instance, const fmi3Byte[], size_t, fmi3FMUState *);
fmi3Status fmi3UpdateDiscreteStates(fmi3Instance, fmi3Boolean *, fmi3Boolean *, fmi3Boolean *, fmi3Boolean *,
                                    fmi3Boolean *, fmi3Float64 *);
fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance);
fmi3Status fmi3SetContinuousStates(fmi3Instance, const fmi3Float64[], size_t);
fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance, fmi3Float64[], size_t);
fmi3Status fmi3EnterStepMode(fmi3Instance);
fmi3Status fmi3Terminate(fmi3Instance);
fmi3Status fmi3Reset(fmi3Instance);

static fmi3Instance cosimulation(const char *token)
{
    return fmi3InstantiateCoSimulation("one", token, "", false, false, false, false, NULL, 0, &messages, record, NULL);
}

int main(void)
{
    fmi3Instance c, other, m;
    fmi3Boolean no[5];
    fmi3Float64 values[ROBOT_VARIABLES], again[ROBOT_VARIABLES], last, seed = 1.0;
    fmi3ValueReference all[ROBOT_VARIABLES], beyond = ROBOT_VARIABLES, far = UINT32_MAX, tau = ROBOT_INPUTS;
    fmi3ValueReference rate = ROBOT_Z;
    fmi3FMUState state = NULL, copy = NULL;
    fmi3String text;
    size_t size, i;
    fmi3Byte *bytes;
    int before;
    for (i = 0; i < ROBOT_VARIABLES; i++) {
        all[i] = (fmi3ValueReference)i;
    }
    CHECK(!cosimulation("another") && !cosimulation(NULL) && messages == 2);
    c = cosimulation(ROBOT_TOKEN);
    other = cosimulation(ROBOT_TOKEN);
    CHECK(c && other && c != other);
    before = allocations;
    CHECK(fmi3DoStep(c, 0.0, 0.1, true, no, no + 1, no + 2, &last) == fmi3Error);
    CHECK(fmi3EnterInitializationMode(c, false, 0.0, 0.0, false, 0.0) == fmi3OK);
    CHECK(fmi3SetFloat64(c, &tau, 1, &seed, 1) == fmi3OK && fmi3SetFloat64(c, &tau, 1, &seed, 2) == fmi3Error);
    CHECK(fmi3ExitInitializationMode(c) == fmi3OK);
    for (i = 0; i < 10; i++) {
        CHECK(fmi3DoStep(c, 0.01 * (double)i, 0.01, true, no, no + 1, no + 2, &last) == fmi3OK);
    }
    CHECK(fabs(last - 0.1) < 1e-12 && !no[0] && !no[1] && !no[2]);
    CHECK(fmi3GetFloat64(c, all, ROBOT_VARIABLES, values, ROBOT_VARIABLES) == fmi3OK && values[ROBOT_Q] != 0.0);
    CHECK(fmi3GetDirectionalDerivative(c, all + ROBOT_Q, ROBOT_VARIABLES - ROBOT_Q, &tau, 1, &seed, 1, values,
                                       ROBOT_VARIABLES - ROBOT_Q) == fmi3OK);
    CHECK(fmi3GetAdjointDerivative(c, &rate, 1, all + ROBOT_X, ROBOT_Z - ROBOT_X, &seed, 1, values,
                                   ROBOT_Z - ROBOT_X) == fmi3OK);
    CHECK(allocations == before);
    CHECK(fmi3GetFloat64(c, &beyond, 1, values, 1) == fmi3Error && fmi3GetFloat64(c, &far, 1, values, 1) == fmi3Error);
    CHECK(fmi3SetFloat64(c, &beyond, 1, &seed, 1) == fmi3Error && fmi3GetString(c, &beyond, 1, &text, 1) == fmi3Error);
    CHECK(fmi3GetDirectionalDerivative(c, &far, 1, &tau, 1, &seed, 1, values, 1) == fmi3Error);
    CHECK(fmi3GetDirectionalDerivative(c, &rate, 1, &far, 1, &seed, 1, values, 1) == fmi3Error);
    CHECK(fmi3EnterStepMode(c) == fmi3Error && fmi3EnterContinuousTimeMode(c) == fmi3Error);

    CHECK(fmi3GetFMUState(c, &state) == fmi3OK && fmi3SerializedFMUStateSize(c, state, &size) == fmi3OK);
    bytes = calloc(size, 1);
    CHECK(fmi3DeserializeFMUState(c, bytes, size - 1, &copy) == fmi3Error && !copy);
    CHECK(fmi3DeserializeFMUState(c, bytes, size, &copy) == fmi3Error && !copy);
    CHECK(fmi3SerializeFMUState(c, state, bytes, size) == fmi3OK);
    bytes[size - 5] ^= 0x40; /* of the mode */
    CHECK(fmi3DeserializeFMUState(c, bytes, size, &copy) == fmi3OK && fmi3SetFMUState(c, copy) == fmi3Error);
    bytes[size - 5] ^= 0x40;
    CHECK(fmi3SerializeFMUState(c, state, bytes, size - 1) == fmi3Error);
    CHECK(fmi3DeserializeFMUState(c, bytes, size, &copy) == fmi3OK);
    CHECK(fmi3GetFloat64(c, all, ROBOT_VARIABLES, values, ROBOT_VARIABLES) == fmi3OK);
    CHECK(fmi3Reset(c) == fmi3OK && fmi3SetFMUState(c, copy) == fmi3OK && fmi3SetFMUState(other, state) == fmi3OK);
    CHECK(fmi3GetFloat64(c, all, ROBOT_VARIABLES, again, ROBOT_VARIABLES) == fmi3OK);
    CHECK(memcmp(values, again, sizeof values) == 0);
    CHECK(fmi3GetFloat64(other, all, ROBOT_VARIABLES, again, ROBOT_VARIABLES) == fmi3OK);
    CHECK(memcmp(values, again, sizeof values) == 0);
    CHECK(fmi3FreeFMUState(c, &copy) == fmi3OK && !copy && fmi3FreeFMUState(c, &copy) == fmi3OK);
    CHECK(fmi3Terminate(c) == fmi3OK && fmi3Terminate(c) == fmi3Error);
    CHECK(fmi3DoStep(c, 0.1, 0.1, true, no, no + 1, no + 2, &last) == fmi3Error);
    CHECK(fmi3Reset(c) == fmi3OK);

    m = fmi3InstantiateModelExchange("two", ROBOT_TOKEN, "", false, false, &messages, record);
    CHECK(m && fmi3EnterInitializationMode(m, false, 0.0, 0.0, false, 0.0) == fmi3OK);
    CHECK(fmi3ExitInitializationMode(m) == fmi3OK && fmi3SetFMUState(m, state) == fmi3Error);
    CHECK(fmi3UpdateDiscreteStates(m, no, no + 1, no + 2, no + 3, no + 4, &last) == fmi3OK);
    CHECK(fmi3EnterContinuousTimeMode(m) == fmi3OK);
    for (i = 0; i < ROBOT_NQ + ROBOT_NV; i++) {
        values[i] = 0.3 * (double)i;
    }
    CHECK(fmi3SetContinuousStates(m, values, ROBOT_NQ + ROBOT_NV) == fmi3OK);
    CHECK(fmi3SetContinuousStates(m, values, 1) == fmi3Error);
    CHECK(fmi3GetContinuousStateDerivatives(m, again, ROBOT_NQ + ROBOT_NV) == fmi3OK && again[0] == values[ROBOT_NQ]);
    values[1] = (double)INFINITY;
    CHECK(fmi3SetContinuousStates(m, values, ROBOT_NQ + ROBOT_NV) == fmi3OK);
    CHECK(fmi3GetContinuousStateDerivatives(m, again, ROBOT_NQ + ROBOT_NV) == fmi3Discard);
    CHECK(fmi3DoStep(m, 0.0, 0.1, true, no, no + 1, no + 2, &last) == fmi3Error);
    CHECK(fmi3FreeFMUState(m, &state) == fmi3OK && fmi3GetFMUState(NULL, &state) == fmi3Error);
    fmi3FreeInstance(m);
    fmi3FreeInstance(c);
    fmi3FreeInstance(other);
    fmi3FreeInstance(NULL);
    free(bytes);
    CHECK(messages > 15);
    puts("done");
    return 0;
}
