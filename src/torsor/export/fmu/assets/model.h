/* One instance of a robot: its variables, mode and functions, which fmi2.c and fmi3.c call.
 *
 * All variables are in one array, by value reference:
 *
 *     time, step | parameters, inputs, q, v | rates of q, rates of v | outputs
 *                | x: kernel arguments      | z: kernel results                |
 *
 * (the inverse dynamics has no step and no states). robot.h defines where each kind begins. */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "robot.h"

/* Several FMUs may be linked into one program, so linker names begin with the robot name. */
#define MODEL_JOINED(prefix, name) prefix##name
#define MODEL_NAMED(prefix, name) MODEL_JOINED(prefix, name)
#define model_reset MODEL_NAMED(ROBOT_PREFIX, model_reset)
#define model_mode MODEL_NAMED(ROBOT_PREFIX, model_mode)
#define model_experiment MODEL_NAMED(ROBOT_PREFIX, model_experiment)
#define model_initialised MODEL_NAMED(ROBOT_PREFIX, model_initialised)
#define model_get MODEL_NAMED(ROBOT_PREFIX, model_get)
#define model_set MODEL_NAMED(ROBOT_PREFIX, model_set)
#define model_get_states MODEL_NAMED(ROBOT_PREFIX, model_get_states)
#define model_set_states MODEL_NAMED(ROBOT_PREFIX, model_set_states)
#define model_get_rates MODEL_NAMED(ROBOT_PREFIX, model_get_rates)
#define model_nominals MODEL_NAMED(ROBOT_PREFIX, model_nominals)
#define model_step MODEL_NAMED(ROBOT_PREFIX, model_step)
#define model_tangent MODEL_NAMED(ROBOT_PREFIX, model_tangent)
#define model_adjoint MODEL_NAMED(ROBOT_PREFIX, model_adjoint)
#define model_pack MODEL_NAMED(ROBOT_PREFIX, model_pack)
#define model_unpack MODEL_NAMED(ROBOT_PREFIX, model_unpack)
#define model_time MODEL_NAMED(ROBOT_PREFIX, model_time)
#define model_restore MODEL_NAMED(ROBOT_PREFIX, model_restore)

/* The modes of the standard, one bit each, so that a set of them is a sum. */
enum {
    MODE_INSTANTIATED = 1,
    MODE_INITIALISATION = 2,
    MODE_EVENT = 4,      /* model exchange: between intervals of continuous time */
    MODE_CONTINUOUS = 8, /* model exchange: an integrator moves time and states */
    MODE_STEP = 16,      /* co-simulation: between steps */
    MODE_TERMINATED = 32,
    MODE_ALL = 63
};

/* The result of each function; the numbers are those of the status in FMI 2 and 3. */
enum { MODEL_OK = 0, MODEL_DISCARD = 2, MODEL_ERROR = 3 };

/* State that an importer may save and restore. */
typedef struct {
    double values[ROBOT_VARIABLES];
    double stop; /* stop time, infinite if there is none (s) */
    int32_t mode;
    int32_t known; /* part of z that belongs to x: KNOWN_NOTHING, KNOWN_RATES, KNOWN_ALL (model.c) */
} ModelState;

typedef struct {
    ModelState state;
    int cosimulation;
    double work[ROBOT_VARIABLES]; /* tangents and gradients, in the order of the variables */
    char message[256];            /* why the last function failed */
} Model;

/* Return to the state after instantiation. */
void model_reset(Model *model);

/* Fail unless the mode is in a set; name is the name of the calling function. */
int model_mode(Model *model, int modes, const char *name);

/* Set the times of an experiment. */
int model_experiment(Model *model, double start, int is_stopped, double stop);

/* Leave initialisation: normalise quaternions and close loops. */
int model_initialised(Model *model);

int model_get(Model *model, const uint32_t references[], size_t count, double values[]);
int model_set(Model *model, const uint32_t references[], size_t count, const double values[]);

int model_get_states(Model *model, double states[], size_t count);
int model_set_states(Model *model, const double states[], size_t count);
int model_get_rates(Model *model, double rates[], size_t count);
int model_nominals(Model *model, double nominals[], size_t count);

/* Integrate from a time by a duration (s) with constant inputs. */
int model_step(Model *model, double point, double length);

/* The derivative of unknowns along a change (seed) of knowns, and, with FMI 3, its transpose: gradients by the knowns
 * of the sum of unknowns times their weights (seed). */
int model_tangent(Model *model, const uint32_t unknowns[], size_t unknown_count, const uint32_t knowns[],
                  size_t known_count, const double seed[], double result[]);
int model_adjoint(Model *model, const uint32_t unknowns[], size_t unknown_count, const uint32_t knowns[],
                  size_t known_count, const double seed[], double result[]);

/* Restore a saved state. */
int model_restore(Model *model, const ModelState *state);

/* A saved state as bytes, preceded by the token of the FMU. Unpacking fails for bytes of another FMU. */
#define MODEL_BYTES (sizeof ROBOT_TOKEN + sizeof(ModelState))
void model_pack(const ModelState *state, unsigned char bytes[]);
int model_unpack(ModelState *state, const unsigned char bytes[]);

/* Set the time in model exchange. */
int model_time(Model *model, double time);

#endif
