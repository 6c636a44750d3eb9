/* The types of the C interface of FMI 3.0, as the standard defines them, and the names of its functions. */
#ifndef FMI3_H
#define FMI3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"

typedef void *fmi3Instance;
typedef void *fmi3InstanceEnvironment;
typedef void *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef float fmi3Float32;
typedef double fmi3Float64;
typedef int8_t fmi3Int8;
typedef uint8_t fmi3UInt8;
typedef int16_t fmi3Int16;
typedef uint16_t fmi3UInt16;
typedef int32_t fmi3Int32;
typedef uint32_t fmi3UInt32;
typedef int64_t fmi3Int64;
typedef uint64_t fmi3UInt64;
typedef bool fmi3Boolean;
typedef char fmi3Char;
typedef const fmi3Char *fmi3String;
typedef uint8_t fmi3Byte;
typedef const fmi3Byte *fmi3Binary;
typedef bool fmi3Clock;

typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef enum {
    fmi3Independent,
    fmi3Constant,
    fmi3Fixed,
    fmi3Tunable,
    fmi3Discrete,
    fmi3Dependent
} fmi3DependencyKind;
typedef enum { fmi3IntervalNotYetKnown, fmi3IntervalUnchanged, fmi3IntervalChanged } fmi3IntervalQualifier;

typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String category, fmi3String message);
typedef void (*fmi3ClockUpdateCallback)(fmi3InstanceEnvironment);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, fmi3Float64 time, fmi3Boolean set_requested,
                                               fmi3Boolean get_allowed, fmi3Boolean step_finished,
                                               fmi3Boolean can_return_early, fmi3Boolean *early_return,
                                               fmi3Float64 *early_return_time);
typedef void (*fmi3LockPreemptionCallback)(void);
typedef void (*fmi3UnlockPreemptionCallback)(void);

/* FMI3_FUNCTION_PREFIX precedes the names of all functions, for static linking. With FMI3_OVERRIDE_FUNCTION_PREFIX
 * the prefix is FMI3_ACTUAL_FUNCTION_PREFIX, or empty. */
#ifdef FMI3_OVERRIDE_FUNCTION_PREFIX
#ifdef FMI3_ACTUAL_FUNCTION_PREFIX
#define FMI3_PREFIX FMI3_ACTUAL_FUNCTION_PREFIX
#else
#define FMI3_PREFIX
#endif
#elif defined(FMI3_FUNCTION_PREFIX)
#define FMI3_PREFIX FMI3_FUNCTION_PREFIX
#else
#define FMI3_PREFIX
#endif
#define FMI3_JOINED(prefix, name) prefix##name
#define FMI3_NAMED(prefix, name) FMI3_JOINED(prefix, name)

#ifndef FMI3_Export
#if defined(_WIN32) || defined(__CYGWIN__)
#define FMI3_Export __declspec(dllexport)
#elif defined(__GNUC__)
#define FMI3_Export __attribute__((visibility("default")))
#else
#define FMI3_Export
#endif
#endif

/* A function of the standard: declared, to avoid compiler warnings, and then defined. */
#define FMI3(result, name, arguments)                           \
    FMI3_Export result FMI3_NAMED(FMI3_PREFIX, name) arguments; \
    FMI3_Export result FMI3_NAMED(FMI3_PREFIX, name) arguments

/* Log a message, and return the error status. */
#define fmi3_refused MODEL_NAMED(ROBOT_PREFIX, fmi3_refused)
fmi3Status fmi3_refused(fmi3Instance instance, const char *message);

#endif
