/* FMI 3.0 functions for features that this FMU does not have, according to its model description: variables other than
 * Float64, clocks, event mode and structural parameters. */
#include "fmi3.h"

/* There are no variables of other types. */
#define NO_VARIABLES(Type)                                                                                       \
    FMI3(fmi3Status, fmi3Get##Type,                                                                              \
         (fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3##Type values[],       \
          size_t value_count))                                                                                   \
    {                                                                                                            \
        (void)references;                                                                                        \
        (void)values;                                                                                            \
        (void)value_count;                                                                                       \
        return count ? fmi3_refused(instance, "fmi3Get" #Type ": there is no variable of this type") : fmi3OK;   \
    }                                                                                                            \
    FMI3(fmi3Status, fmi3Set##Type,                                                                              \
         (fmi3Instance instance, const fmi3ValueReference references[], size_t count, const fmi3##Type values[], \
          size_t value_count))                                                                                   \
    {                                                                                                            \
        (void)references;                                                                                        \
        (void)values;                                                                                            \
        (void)value_count;                                                                                       \
        return count ? fmi3_refused(instance, "fmi3Set" #Type ": there is no variable of this type") : fmi3OK;   \
    }

NO_VARIABLES(Float32)
NO_VARIABLES(Int8)
NO_VARIABLES(UInt8)
NO_VARIABLES(Int16)
NO_VARIABLES(UInt16)
NO_VARIABLES(Int32)
NO_VARIABLES(UInt32)
NO_VARIABLES(Int64)
NO_VARIABLES(UInt64)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)

FMI3(fmi3Status, fmi3GetBinary,
     (fmi3Instance instance, const fmi3ValueReference references[], size_t count, size_t sizes[], fmi3Binary values[],
      size_t value_count))
{
    (void)references;
    (void)sizes;
    (void)values;
    (void)value_count;
    return count ? fmi3_refused(instance, "fmi3GetBinary: there is no variable of this type") : fmi3OK;
}

FMI3(fmi3Status, fmi3SetBinary,
     (fmi3Instance instance, const fmi3ValueReference references[], size_t count, const size_t sizes[],
      const fmi3Binary values[], size_t value_count))
{
    (void)references;
    (void)sizes;
    (void)values;
    (void)value_count;
    return count ? fmi3_refused(instance, "fmi3SetBinary: there is no variable of this type") : fmi3OK;
}

/* Clock functions, which take value references and arrays. */
#define NO_CLOCKS(name, one)                                                                                  \
    FMI3(fmi3Status, name, (fmi3Instance instance, const fmi3ValueReference references[], size_t count, one)) \
    {                                                                                                         \
        (void)references;                                                                                     \
        (void)first;                                                                                          \
        return count ? fmi3_refused(instance, #name ": there are no clocks") : fmi3OK;                        \
    }
#define NO_CLOCKS_2(name, one, two)                                                                                \
    FMI3(fmi3Status, name, (fmi3Instance instance, const fmi3ValueReference references[], size_t count, one, two)) \
    {                                                                                                              \
        (void)references;                                                                                          \
        (void)first;                                                                                               \
        (void)second;                                                                                              \
        return count ? fmi3_refused(instance, #name ": there are no clocks") : fmi3OK;                             \
    }

NO_CLOCKS(fmi3GetClock, fmi3Clock first[])
NO_CLOCKS(fmi3SetClock, const fmi3Clock first[])
NO_CLOCKS(fmi3GetShiftDecimal, fmi3Float64 first[])
NO_CLOCKS(fmi3SetIntervalDecimal, const fmi3Float64 first[])
NO_CLOCKS(fmi3SetShiftDecimal, const fmi3Float64 first[])
NO_CLOCKS_2(fmi3GetIntervalDecimal, fmi3Float64 first[], fmi3IntervalQualifier second[])
NO_CLOCKS_2(fmi3GetShiftFraction, fmi3UInt64 first[], fmi3UInt64 second[])
NO_CLOCKS_2(fmi3SetIntervalFraction, const fmi3UInt64 first[], const fmi3UInt64 second[])
NO_CLOCKS_2(fmi3SetShiftFraction, const fmi3UInt64 first[], const fmi3UInt64 second[])

FMI3(fmi3Status, fmi3GetIntervalFraction,
     (fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3UInt64 counters[],
      fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[]))
{
    (void)references;
    (void)counters;
    (void)resolutions;
    (void)qualifiers;
    return count ? fmi3_refused(instance, "fmi3GetIntervalFraction: there are no clocks") : fmi3OK;
}

FMI3(fmi3Status, fmi3GetNumberOfVariableDependencies,
     (fmi3Instance instance, fmi3ValueReference reference, size_t *count))
{
    (void)reference;
    (void)count;
    return fmi3_refused(instance, "dependencies are in the model description");
}

FMI3(fmi3Status, fmi3GetVariableDependencies,
     (fmi3Instance instance, fmi3ValueReference dependent, size_t elements[], fmi3ValueReference independents[],
      size_t independent_elements[], fmi3DependencyKind kinds[], size_t count))
{
    (void)dependent;
    (void)elements;
    (void)independents;
    (void)independent_elements;
    (void)kinds;
    (void)count;
    return fmi3_refused(instance, "dependencies are in the model description");
}

FMI3(fmi3Status, fmi3EnterConfigurationMode, (fmi3Instance instance))
{
    return fmi3_refused(instance, "fmi3EnterConfigurationMode: there are no structural parameters");
}

FMI3(fmi3Status, fmi3ExitConfigurationMode, (fmi3Instance instance))
{
    return fmi3_refused(instance, "fmi3ExitConfigurationMode: there are no structural parameters");
}

FMI3(fmi3Status, fmi3EvaluateDiscreteStates, (fmi3Instance instance))
{
    return fmi3_refused(instance, "fmi3EvaluateDiscreteStates: there are no discrete states");
}

FMI3(fmi3Status, fmi3GetEventIndicators, (fmi3Instance instance, fmi3Float64 indicators[], size_t count))
{
    (void)indicators;
    return count ? fmi3_refused(instance, "fmi3GetEventIndicators: there are none") : fmi3OK;
}

FMI3(fmi3Status, fmi3EnterStepMode, (fmi3Instance instance))
{
    return fmi3_refused(instance, "fmi3EnterStepMode: there is no event mode");
}

FMI3(fmi3Status, fmi3GetOutputDerivatives,
     (fmi3Instance instance, const fmi3ValueReference references[], size_t count, const fmi3Int32 orders[],
      fmi3Float64 values[], size_t value_count))
{
    (void)references;
    (void)orders;
    (void)values;
    (void)value_count;
    return count ? fmi3_refused(instance, "fmi3GetOutputDerivatives: there are none") : fmi3OK;
}

FMI3(fmi3Status, fmi3ActivateModelPartition,
     (fmi3Instance instance, fmi3ValueReference clock, fmi3Float64 time))
{
    (void)clock;
    (void)time;
    return fmi3_refused(instance, "fmi3ActivateModelPartition: there is no scheduled execution");
}
