/* One instance of a robot; see model.h. No memory is allocated, and no state is kept outside the instance. */
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels.h"

enum { KNOWN_NOTHING = 0, KNOWN_RATES = 1, KNOWN_ALL = 2 };

#define FASTEST 3e8 /* m/s or rad/s: faster motion has diverged */
#define WHOLE 1e-9  /* tolerance for an integer quotient of two times */
#define MAX_STEPS 1e9
#define OPEN 1e-5     /* rad, m, or relative to the largest velocity: closure tolerance at the start */
#define SINGULAR 1e-7 /* margin below which the closure equations are dependent */
#define DEPENDENT "the closure equations that were selected at the start become dependent"

static int failed(Model *model, int status, const char *what)
{
    snprintf(model->message, sizeof model->message, "%s", what);
    return status;
}

/* Store an error message about a variable. */
static int refused(Model *model, uint32_t reference, const char *what)
{
    if (reference < ROBOT_VARIABLES) {
        snprintf(model->message, sizeof model->message, "%s: %s", robot_names[reference], what);
    } else {
        snprintf(model->message, sizeof model->message, "value reference %lu: %s", (unsigned long)reference,
                 "there is no such variable");
    }
    return MODEL_ERROR;
}

void model_reset(Model *model)
{
    memcpy(model->state.values, robot_start, sizeof model->state.values);
    model->state.stop = HUGE_VAL;
    model->state.mode = MODE_INSTANTIATED;
    model->state.known = KNOWN_NOTHING;
}

int model_mode(Model *model, int modes, const char *name)
{
    if (model->state.mode & modes) {
        return MODEL_OK;
    }
    snprintf(model->message, sizeof model->message, "%s is not allowed in this mode", name);
    return MODEL_ERROR;
}

int model_experiment(Model *model, double start, int is_stopped, double stop)
{
    if (!isfinite(start) || (is_stopped && !(stop >= start))) {
        return failed(model, MODEL_ERROR, "the start time is not finite, or the stop time is before it");
    }
    model->state.values[0] = start;
    model->state.stop = is_stopped ? stop : HUGE_VAL;
    return MODEL_OK;
}

#ifdef ROBOT_CLOSING
/* Project the start on the nearest closed loops; fail if there are none, or the velocities open them. */
static int closed_start(Model *model)
{
    double *q = model->state.values + ROBOT_Q, closed[ROBOT_NQ + ROBOT_NV], margin, fastest = 1.0;
    size_t i;
    robot_closed(model->state.values + ROBOT_X, q, closed, &margin);
    for (i = ROBOT_NQ; i < ROBOT_NQ + ROBOT_NV; i++) {
        fastest = fmax(fastest, fabs(q[i]));
    }
    for (i = 0; i < ROBOT_NQ + ROBOT_NV; i++) {
        if (!(fabs(closed[i] - q[i]) <= OPEN * (i < ROBOT_NQ ? 1.0 : fastest))) {
            return refused(model, (uint32_t)(ROBOT_Q + i), "q does not close the loops at the start, or v opens them");
        }
    }
    if (!(margin >= SINGULAR)) {
        return failed(model, MODEL_ERROR, DEPENDENT);
    }
    memcpy(q, closed, sizeof closed);
    return MODEL_OK;
}
#endif

int model_initialised(Model *model)
{
#if ROBOT_NV
    double *q = model->state.values + ROBOT_Q, start[ROBOT_NQ], rest[ROBOT_NV] = {0};
    size_t i;
    memcpy(start, q, sizeof start);
    robot_chart(start, rest, q);
    for (i = 0; i < ROBOT_NQ; i++) {
        if (!isfinite(q[i])) {
            memcpy(q, start, sizeof start);
            return refused(model, (uint32_t)(ROBOT_Q + i), "the quaternion has norm 0");
        }
    }
#ifdef ROBOT_CLOSING
    if (closed_start(model)) {
        return MODEL_ERROR;
    }
#endif
    model->state.known = KNOWN_NOTHING;
#endif
    model->state.mode = model->cosimulation ? MODE_STEP : MODE_EVENT;
    return MODEL_OK;
}

/* Fail if a result is not finite; integrators may then try a shorter step. */
static int all_finite(Model *model, size_t first, size_t end)
{
    size_t i;
    for (i = first; i < end; i++) {
        if (!isfinite(model->state.values[i])) {
            refused(model, (uint32_t)i, "it is not finite; check states, inputs and parameters");
            return model->state.mode == MODE_CONTINUOUS ? MODEL_DISCARD : MODEL_ERROR;
        }
    }
    return MODEL_OK;
}

/* Compute the rates, or rates and outputs, unless they belong to the present x. */
static int evaluate(Model *model, int wanted)
{
    double *values = model->state.values;
    int status = MODEL_OK;
#if ROBOT_NV
    if (model->state.known < KNOWN_RATES) {
        robot_rates(values + ROBOT_X, values + ROBOT_Z);
        status = all_finite(model, ROBOT_Z, ROBOT_OUTPUTS);
        model->state.known = status ? KNOWN_NOTHING : KNOWN_RATES;
    }
#endif
#if ROBOT_OUTPUTS < ROBOT_VARIABLES
    if (!status && wanted == KNOWN_ALL && model->state.known < KNOWN_ALL) {
        robot_outputs(values + ROBOT_X, values + ROBOT_Z, values + ROBOT_OUTPUTS);
        status = all_finite(model, ROBOT_OUTPUTS, ROBOT_VARIABLES);
        model->state.known = status ? model->state.known : KNOWN_ALL;
    }
#endif
    (void)wanted;
    (void)values;
    return status;
}

int model_get(Model *model, const uint32_t references[], size_t count, double values[])
{
    size_t i;
    for (i = 0; i < count; i++) {
        int status = MODEL_OK;
        if (references[i] >= ROBOT_VARIABLES) {
            return refused(model, references[i], "");
        }
        if (references[i] >= ROBOT_Z) {
            status = evaluate(model, references[i] < ROBOT_OUTPUTS ? KNOWN_RATES : KNOWN_ALL);
        }
        if (status) {
            return status;
        }
        values[i] = model->state.values[references[i]];
    }
    return MODEL_OK;
}

/* The modes in which a variable may be set. */
static int settable(uint32_t reference)
{
    if (reference == 0 || reference >= ROBOT_Z) {
        return 0;
    }
    if (reference < ROBOT_INPUTS) { /* step and parameters */
        return MODE_INSTANTIATED + MODE_INITIALISATION + MODE_EVENT + MODE_STEP;
    }
    if (reference < ROBOT_Q) {
        return MODE_ALL - MODE_TERMINATED;
    }
    return MODE_INSTANTIATED + MODE_INITIALISATION;
}

int model_set(Model *model, const uint32_t references[], size_t count, const double values[])
{
    size_t i;
    model->state.known = KNOWN_NOTHING;
    for (i = 0; i < count; i++) {
        uint32_t reference = references[i];
        if (reference >= ROBOT_VARIABLES || !(settable(reference) & model->state.mode)) {
            return refused(model, reference, "it may not be set in this mode");
        }
        if (!isfinite(values[i]) || values[i] < robot_least[reference]) {
            return refused(model, reference, "the value is not finite, or below its minimum");
        }
        model->state.values[reference] = values[i];
    }
    return MODEL_OK;
}

static int counted(Model *model, size_t count)
{
    return count == ROBOT_NQ + ROBOT_NV ? MODEL_OK : failed(model, MODEL_ERROR, "wrong number of continuous states");
}

int model_get_states(Model *model, double states[], size_t count)
{
    if (counted(model, count)) {
        return MODEL_ERROR;
    }
    if (count) {
        memcpy(states, model->state.values + ROBOT_Q, count * sizeof *states);
    }
    return MODEL_OK;
}

int model_set_states(Model *model, const double states[], size_t count)
{
    if (counted(model, count)) {
        return MODEL_ERROR;
    }
    if (count) {
        memcpy(model->state.values + ROBOT_Q, states, count * sizeof *states);
    }
    model->state.known = KNOWN_NOTHING;
    return MODEL_OK;
}

int model_get_rates(Model *model, double rates[], size_t count)
{
    int status = counted(model, count);
    if (!status) {
        status = evaluate(model, KNOWN_RATES);
    }
    if (!status && count) {
        memcpy(rates, model->state.values + ROBOT_Z, count * sizeof *rates);
    }
    return status;
}

int model_nominals(Model *model, double nominals[], size_t count)
{
    size_t i;
    if (counted(model, count)) {
        return MODEL_ERROR;
    }
    for (i = 0; i < count; i++) {
        nominals[i] = 1.0;
    }
    return MODEL_OK;
}

#if ROBOT_NV
enum { STEP_DONE = -1, STEP_SINGULAR = -2 };

/* One step of the classical Runge-Kutta method, in local coordinates u about the positions at its start, so that
 * quaternions keep norm 1 (Munthe-Kaas 1999). Loops are closed at its end by projection. The result is the
 * coordinate whose speed has diverged, or one of the above. */
static int advance(Model *model, double h)
{
    static const double fraction[4] = {0.0, 0.5, 0.5, 1.0};
    static const double weight[4] = {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0};
    double *x = model->state.values + ROBOT_X, *q = model->state.values + ROBOT_Q, *v = q + ROBOT_NQ;
    double *rates = model->state.values + ROBOT_Z, *v_rate = rates + ROBOT_NQ;
    double start[ROBOT_NQ + ROBOT_NV], u[ROBOT_NV], u_rate[ROBOT_NV] = {0}, u_sum[ROBOT_NV] = {0};
    double v_sum[ROBOT_NV] = {0};
    int stage, i;
#ifdef ROBOT_CLOSING
    double end[ROBOT_NQ + ROBOT_NV], closed[ROBOT_NQ + ROBOT_NV], margin, closing = model->state.values[ROBOT_CLOSING];
    model->state.values[ROBOT_CLOSING] = 0.0;
#endif
    memcpy(start, q, sizeof start);
    for (stage = 0; stage < 4; stage++) {
        for (i = 0; i < ROBOT_NV; i++) {
            u[i] = stage ? fraction[stage] * h * u_rate[i] : 0.0;
            v[i] = stage ? start[ROBOT_NQ + i] + fraction[stage] * h * v_rate[i] : start[ROBOT_NQ + i];
        }
        robot_chart(start, u, q);
        robot_chart_rate(u, v, u_rate);
        robot_rates(x, rates);
        for (i = 0; i < ROBOT_NV; i++) {
            u_sum[i] += weight[stage] * u_rate[i];
            v_sum[i] += weight[stage] * v_rate[i];
        }
    }
    for (i = 0; i < ROBOT_NV; i++) {
        u[i] = h * u_sum[i];
        v[i] = start[ROBOT_NQ + i] + h * v_sum[i];
    }
    robot_chart(start, u, q);
#ifdef ROBOT_CLOSING
    model->state.values[ROBOT_CLOSING] = closing;
    memcpy(end, q, sizeof end);
    memcpy(q, start, sizeof start);
    robot_closed(x, end, closed, &margin);
    if (margin < SINGULAR) {
        return STEP_SINGULAR;
    }
    memcpy(q, closed, sizeof closed);
#endif
    for (i = 0; i < ROBOT_NV; i++) {
        if (!(fabs(v[i]) < FASTEST)) {
            memcpy(q, start, sizeof start);
            return i;
        }
    }
    return STEP_DONE;
}

/* Equal steps of at most the parameter "step". */
static int moved(Model *model, double length)
{
    double step = model->state.values[ROBOT_STEP], count = fmax(1.0, ceil(length / step - WHOLE)), k;
    if (!(count <= MAX_STEPS)) {
        return refused(model, ROBOT_STEP, "it is too small for the communication step");
    }
    for (k = 0.0; k < count; k += 1.0) {
        int result = advance(model, length / count);
        model->state.known = KNOWN_NOTHING;
        if (result == STEP_SINGULAR) {
            return failed(model, MODEL_ERROR, DEPENDENT);
        }
        if (result >= 0) {
            return refused(model, (uint32_t)(ROBOT_Q + ROBOT_NQ + result),
                           "the motion diverges; reduce the parameter step, or check inputs and parameters");
        }
    }
    return MODEL_OK;
}
#else
static int moved(Model *model, double length)
{
    (void)model;
    (void)length;
    return MODEL_OK;
}
#endif

int model_step(Model *model, double point, double length)
{
    double now = model->state.values[0];
    if (!isfinite(point) || fabs(point - now) > WHOLE * (1.0 + fabs(now))) {
        return failed(model, MODEL_ERROR, "the communication point is not the end of the last step");
    }
    if (!(length > 0.0) || !isfinite(length)) {
        return failed(model, MODEL_ERROR, "the communication step is not a positive number");
    }
    if (point + length > model->state.stop + WHOLE * (1.0 + fabs(model->state.stop))) {
        return failed(model, MODEL_ERROR, "the communication step goes past the stop time");
    }
    if (moved(model, length)) {
        return MODEL_ERROR;
    }
    model->state.values[0] = point + length;
    return MODEL_OK;
}

/* Fail unless all unknowns are states, rates or outputs, and all knowns parameters, inputs or states. */
static int checked(Model *model, const uint32_t unknowns[], size_t unknown_count, const uint32_t knowns[],
                   size_t known_count)
{
    size_t i;
    for (i = 0; i < unknown_count; i++) {
        if (unknowns[i] < ROBOT_Q || unknowns[i] >= ROBOT_VARIABLES) {
            return refused(model, unknowns[i], "it has no derivatives");
        }
    }
    for (i = 0; i < known_count; i++) {
        if (knowns[i] < ROBOT_X || knowns[i] >= ROBOT_Z) {
            return refused(model, knowns[i], "derivatives with respect to it are not available");
        }
    }
    memset(model->work, 0, sizeof model->work);
    return MODEL_OK;
}

int model_tangent(Model *model, const uint32_t unknowns[], size_t unknown_count, const uint32_t knowns[],
                  size_t known_count, const double seed[], double result[])
{
    double *d = model->work;
    size_t i;
    if (checked(model, unknowns, unknown_count, knowns, known_count)) {
        return MODEL_ERROR;
    }
    for (i = 0; i < known_count; i++) {
        d[knowns[i]] += seed[i];
    }
    robot_tangent(model->state.values + ROBOT_X, d + ROBOT_X, d + ROBOT_Z);
    for (i = 0; i < unknown_count; i++) {
        result[i] = d[unknowns[i]];
    }
    return MODEL_OK;
}

#ifdef robot_adjoint
int model_adjoint(Model *model, const uint32_t unknowns[], size_t unknown_count, const uint32_t knowns[],
                  size_t known_count, const double seed[], double result[])
{
    double *bar = model->work, gradient[ROBOT_Z - ROBOT_X];
    size_t i;
    if (checked(model, unknowns, unknown_count, knowns, known_count)) {
        return MODEL_ERROR;
    }
    for (i = 0; i < unknown_count; i++) {
        bar[unknowns[i]] += seed[i];
    }
    robot_adjoint(model->state.values + ROBOT_X, bar + ROBOT_Z, gradient);
    for (i = 0; i < known_count; i++) {
        result[i] = bar[knowns[i]] + gradient[knowns[i] - ROBOT_X]; /* a state is also an unknown: itself */
    }
    return MODEL_OK;
}
#endif

int model_restore(Model *model, const ModelState *state)
{
    int32_t mode = state->mode, other = model->cosimulation ? MODE_EVENT + MODE_CONTINUOUS : MODE_STEP;
    if (mode <= 0 || mode > MODE_ALL || (mode & (mode - 1)) || (mode & other) || state->known < KNOWN_NOTHING ||
        state->known > KNOWN_ALL) {
        return failed(model, MODEL_ERROR, "this is not a saved state of this FMU");
    }
    model->state = *state;
    return MODEL_OK;
}

void model_pack(const ModelState *state, unsigned char bytes[])
{
    memcpy(bytes, ROBOT_TOKEN, sizeof ROBOT_TOKEN);
    memcpy(bytes + sizeof ROBOT_TOKEN, state, sizeof *state);
}

int model_unpack(ModelState *state, const unsigned char bytes[])
{
    if (memcmp(bytes, ROBOT_TOKEN, sizeof ROBOT_TOKEN) != 0) {
        return MODEL_ERROR;
    }
    memcpy(state, bytes + sizeof ROBOT_TOKEN, sizeof *state);
    return MODEL_OK;
}

int model_time(Model *model, double time)
{
    if (!isfinite(time)) {
        return refused(model, 0, "it is not finite");
    }
    model->state.values[0] = time;
    return MODEL_OK;
}
