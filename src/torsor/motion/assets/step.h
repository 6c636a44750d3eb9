@ABOUT@#ifndef @NAME@_STEP_H
#define @NAME@_STEP_H

#include "@name@.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { @NAME@_COUNT = @n@, @NAME@_HORIZON = @N@ }; /* coordinates, steps of @DT@ s */

/* The plan of the last call and the work space. Set it to zeros before the first call, or to discard the plan. Its
 * size is stated above; declare it static if the stack is small. */
typedef struct {
    int has_plan, passes; /* passes: those of the last call */
    double z[@N@ + 1][@SIZE_Z@], target[@N@ + 1][@SIZE_TARGET@], cost[@N@ + 1][@SIZE_COST@];
    double model[@N@][@SIZE_MODEL@], factors[@N@][@SIZE_FACTORS@], rows[@N@][@SIZE_ROWS@];
    double flags[@N@][@SIZE_FLAGS@], inner[@N@][@SIZE_INNER@], step[@N@][@SIZE_STEP@];
    double tau[@N@][@n@], excess[@N@][@n@];
} @name@_state;

static const double @name@_limits[@SIZE_LIMITS@] = {@LIMITS@};
static const double @name@_end_cost[@SIZE_COST@] = {@END_COST@};

static inline void @name@_sweep(@name@_state *s)
{
    for (int k = @N@ - 1; k >= 0; k--)
        @name@_backward(s->cost[k + 1], s->model[k], s->rows[k], @name@_limits, s->cost[k], s->factors[k]);
    for (int k = 0; k < @N@; k++)
        @name@_forward(s->z[k], s->model[k], s->factors[k], s->target[k], s->target[k + 1], s->z[k + 1], s->tau[k],
                       s->excess[k]);
    s->passes++;
}

/* Decrease the complementarity to `end`, relative to `start`, and set the flags to the active set there. Begin anew if
 * `start` is 0, and return it. */
static inline double @name@_approach(@name@_state *s, double start, double end)
{
    const double *low = @name@_limits, *high = @name@_limits + 3 * @n@, *weight = @name@_limits + 7 * @n@;
    double width[3 * @n@];
    const int begins = start == 0;
    for (int i = 0; i < 3 * @n@; i++)
        width[i] = i < @n@ || high[i] - low[i] < 2 * @MAX_WIDTH@ ? (high[i] - low[i]) / 2 : @MAX_WIDTH@;
    for (int i = 0; begins && i < 2 * @n@; i++) {
        for (int k = 0; k <= @N@; k++)
            start += weight[i] * (s->z[0][i] - s->target[k][i]) * (s->z[0][i] - s->target[k][i]) / (@N@ + 1);
        start += @MU_START@ * weight[i];
    }
    for (int k = 0; begins && k < @N@; k++)
        for (int i = 0; i < 6 * @n@; i++) {
            s->inner[k][i] = width[i % (3 * @n@)];
            s->inner[k][i + 6 * @n@] = start / width[i % (3 * @n@)];
        }
    for (int pass = 0; pass <= @BARRIER_PASSES@; pass++) {
        double reach = 1, reached, mu = 0;
        for (int k = 0; k < @N@; k++)
            for (int i = 0; i < 6 * @n@; i++)
                mu += s->inner[k][i] * s->inner[k][i + 6 * @n@] / (6 * @n@ * @N@);
        if (mu <= end * start || pass == @BARRIER_PASSES@)
            break;
        mu *= @MU_RATIO@;
        for (int k = 0; k < @N@; k++)
            @name@_barrier(s->inner[k], &mu, s->target[k + 1], @name@_limits, s->rows[k]);
        @name@_sweep(s);
        for (int k = 0; k < @N@; k++) {
            @name@_advance(s->inner[k], &mu, s->z[k + 1], s->tau[k], @name@_limits, s->step[k], &reached);
            reach = reached < reach ? reached : reach;
        }
        for (int k = 0; k < @N@; k++)
            for (int i = 0; i < 12 * @n@; i++)
                s->inner[k][i] += reach * s->step[k][i];
    }
    for (int k = 0; k < @N@; k++)
        for (int i = 0; i < 3 * @n@; i++) {
            const double *t = s->inner[k] + i, *m = t + 6 * @n@;
            const double ratio = i < @n@ ? start / (width[i] * width[i]) : @name@_limits[8 * @n@ + i];
            s->flags[k][i] = (m[0] > ratio * t[0]) - (m[3 * @n@] > ratio * t[3 * @n@]);
        }
    return start;
}

/* Compute the forces for the next @DT@ s. Call once per sampling period.
 *   s, in and out: the plan; all zeros before the first call
 *   elapsed, in: time since the last call (s); the first call ignores it. If it is negative or longer than the horizon,
 *     the plan is discarded.
 *   q, @n@, in: measured positions, rad and m
 *   v, @n@, in: measured velocities, rad/s and m/s
 *   reference_q, (@N@ + 1) x @n@, in: desired positions at this time and after 1, 2, ... @N@ steps of @DT@ s, row by row
 *   reference_v, (@N@ + 1) x @n@, in: desired velocities at the same times
 *   tau, @n@, out: forces to apply, N m and N, always within their bounds
 * Return 1 if the plan is an optimum, or 0 if it is only near one; tau can be applied in both cases. If q, v or the
 * reference are not finite, tau is not finite either; then set *s to zeros. */
static inline int @name@_step(@name@_state *s, double elapsed, const double q[@n@], const double v[@n@],
                              const double reference_q[(@N@ + 1) * @n@],
                              const double reference_v[(@N@ + 1) * @n@], double tau[@n@])
{
    static const double ends[] = {@MU_ENDS@};
    const double dt = @DT@, steps = elapsed / dt;
    const int keeps = s->has_plan && steps >= 0 && steps <= @N@, whole = keeps ? (int)steps : 0;
    const int nearest = keeps ? (int)(steps + 0.5) : 0;
    double new_flags[3 * @n@], start = 0;
    int solved = 0;
    for (int k = 0; k <= @N@; k++)
        for (int i = 0; i < 2 * @n@; i++) {
            const double *from = s->z[k + whole < @N@ ? k + whole : @N@];
            const double *to = s->z[k + whole + 1 < @N@ ? k + whole + 1 : @N@];
            if (k > 0 && keeps)
                s->z[k][i] = from[i] + (steps - whole) * (to[i] - from[i]);
            else
                s->z[k][i] = i < @n@ ? q[i] : dt * v[i - @n@];
        }
    for (int k = 0; k <= @N@; k++)
        for (int i = 0; i < @n@; i++) {
            const double aim = reference_q[k * @n@ + i], low = @name@_limits[@n@ + i], high = @name@_limits[4 * @n@ + i];
            s->target[k][i] = aim < low ? low : aim > high ? high : aim;
            s->target[k][@n@ + i] = aim < low || aim > high ? 0 : dt * reference_v[k * @n@ + i];
        }
    for (int k = 0; k < @N@; k++)
        for (int i = 0; i < 3 * @n@; i++)
            s->flags[k][i] = keeps ? s->flags[k + nearest < @N@ ? k + nearest : @N@ - 1][i] : 0;
    memcpy(s->cost[@N@], @name@_end_cost, sizeof @name@_end_cost);
    for (int k = 0; k < @N@; k++)
        @name@_torque_model(s->z[k], s->z[k + 1], s->target[k], s->target[k + 1], &dt, s->model[k]);
    s->passes = 0;
    for (int attempt = 0; attempt < (int)(sizeof ends / sizeof ends[0]) && !solved; attempt++) {
        int fewest = 3 * @n@ * @N@ + 1, patience = @PATIENCE@;
        while (patience >= 0 && !solved) {
            int wrong = 0;
            for (int k = 0; k < @N@; k++)
                @name@_pinned(s->flags[k], s->target[k + 1], @name@_limits, s->rows[k]);
            @name@_sweep(s);
            for (int k = 0; k < @N@; k++) {
                @name@_signs(s->flags[k], s->z[k + 1], s->tau[k], s->excess[k], @name@_limits, new_flags);
                for (int i = 0; i < 3 * @n@; i++)
                    wrong += new_flags[i] != s->flags[k][i];
                memcpy(s->flags[k], new_flags, sizeof new_flags);
            }
            solved = !wrong;
            patience -= wrong >= fewest;
            fewest = wrong < fewest ? wrong : fewest;
        }
        if (!solved)
            start = @name@_approach(s, start, ends[attempt]);
    }
    s->has_plan = 1;
    for (int i = 0; i < @n@; i++) {
        const double low = @name@_limits[i], high = @name@_limits[i + 3 * @n@];
        tau[i] = s->tau[0][i] < low ? low : s->tau[0][i] > high ? high : s->tau[0][i];
    }
    return solved;
}

#ifdef __cplusplus
}
#endif

#endif
