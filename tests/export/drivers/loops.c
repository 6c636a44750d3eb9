/* Moves a model with closed loops: its start, steps, derivatives, and starts that it refuses. */
#include <stdio.h>

#include "model.h"

#define CHECK(truth)                                         \
    if (!(truth)) {                                          \
        printf("line %d: %s\n", __LINE__, model.message);    \
        return 1;                                            \
    }

static Model model;

int main(void)
{
    const uint32_t closing = ROBOT_CLOSING, q = ROBOT_Q, rate = ROBOT_Z;
    const double half = 0.5, none = 0.0, negative = -1.0;
    double found;
    int k;
    model.cosimulation = 1;
    model_reset(&model);
    CHECK(model_experiment(&model, 0.0, 1, 1.0) == MODEL_OK)
    model.state.mode = MODE_INITIALISATION;
    CHECK(model_set(&model, &closing, 1, &negative) == MODEL_ERROR)
    CHECK(model_set(&model, &q, 1, &half) == MODEL_OK)
    CHECK(model_initialised(&model) == MODEL_ERROR) /* one joint alone does not move */
    CHECK(model_set(&model, &q, 1, &none) == MODEL_OK)
    CHECK(model_initialised(&model) == MODEL_OK)
    for (k = 0; k < 10; k++) {
        CHECK(model_step(&model, 0.1 * k, 0.1) == MODEL_OK)
    }
    CHECK(model_step(&model, 1.0, 0.1) == MODEL_ERROR)
    CHECK(model_tangent(&model, &rate, 1, &q, 1, &half, &found) == MODEL_OK)
    CHECK(model_adjoint(&model, &rate, 1, &q, 1, &half, &found) == MODEL_OK)
    puts("done");
    return 0;
}
