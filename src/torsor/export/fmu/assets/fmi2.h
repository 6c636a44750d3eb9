/* The types of the C interface of FMI 2.0, as the standard defines them, and the names of its functions. */
#ifndef FMI2_H
#define FMI2_H

#include <stddef.h>

typedef void *fmi2Component;
typedef void *fmi2ComponentEnvironment;
typedef void *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer;
typedef int fmi2Boolean;
typedef char fmi2Char;
typedef const fmi2Char *fmi2String;
typedef char fmi2Byte;

enum { fmi2False = 0, fmi2True = 1 };
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum { fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated } fmi2StatusKind;

typedef void (*fmi2CallbackLogger)(fmi2ComponentEnvironment, fmi2String name, fmi2Status, fmi2String category,
                                   fmi2String message, ...);
typedef void *(*fmi2CallbackAllocateMemory)(size_t count, size_t size);
typedef void (*fmi2CallbackFreeMemory)(void *block);
typedef void (*fmi2StepFinished)(fmi2ComponentEnvironment, fmi2Status);

typedef struct {
    fmi2CallbackLogger logger;
    fmi2CallbackAllocateMemory allocateMemory;
    fmi2CallbackFreeMemory freeMemory;
    fmi2StepFinished stepFinished;
    fmi2ComponentEnvironment componentEnvironment;
} fmi2CallbackFunctions;

typedef struct {
    fmi2Boolean newDiscreteStatesNeeded;
    fmi2Boolean terminateSimulation;
    fmi2Boolean nominalsOfContinuousStatesChanged;
    fmi2Boolean valuesOfContinuousStatesChanged;
    fmi2Boolean nextEventTimeDefined;
    fmi2Real nextEventTime;
} fmi2EventInfo;

/* FMI2_FUNCTION_PREFIX precedes the names of all functions, for static linking. With FMI2_OVERRIDE_FUNCTION_PREFIX
 * the prefix is FMI2_ACTUAL_FUNCTION_PREFIX, or empty. */
#ifdef FMI2_OVERRIDE_FUNCTION_PREFIX
#ifdef FMI2_ACTUAL_FUNCTION_PREFIX
#define FMI2_PREFIX FMI2_ACTUAL_FUNCTION_PREFIX
#else
#define FMI2_PREFIX
#endif
#elif defined(FMI2_FUNCTION_PREFIX)
#define FMI2_PREFIX FMI2_FUNCTION_PREFIX
#else
#define FMI2_PREFIX
#endif
#define FMI2_JOINED(prefix, name) prefix##name
#define FMI2_NAMED(prefix, name) FMI2_JOINED(prefix, name)

#ifndef FMI2_Export
#if defined(_WIN32) || defined(__CYGWIN__)
#define FMI2_Export __declspec(dllexport)
#elif defined(__GNUC__)
#define FMI2_Export __attribute__((visibility("default")))
#else
#define FMI2_Export
#endif
#endif

/* A function of the standard: declared, to avoid compiler warnings, and then defined. */
#define FMI2(result, name, arguments)                           \
    FMI2_Export result FMI2_NAMED(FMI2_PREFIX, name) arguments; \
    FMI2_Export result FMI2_NAMED(FMI2_PREFIX, name) arguments

#endif
