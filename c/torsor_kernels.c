/* Written by Torsor. A statement is one operation; -ffp-contract=off keeps it so. */
#include "torsor_kernels.h"

#include <math.h>

#ifdef __cplusplus /* commands of C++ compilers take this file for C++, which does not know the word */
#define restrict
#endif

void inverse_dynamics(const double q[restrict 2], const double v[restrict 2], const double a[restrict 2], double out[restrict 2])
{
    double w0 = 0x1.999999999999bp-3 * a[0];
    double w1 = a[0] + a[1];
    double w2 = 0x1.eb851eb851ebbp-4 * w1;
    double w3 = sin(q[1]);
    double w4 = v[0] * v[0];
    w4 = 0x1.999999999999ap-2 * w4;
    w4 = w3 * w4;
    double w5 = cos(q[1]);
    double w6 = 0x1.999999999999ap-2 * a[0];
    w6 = w5 * w6;
    w6 = w4 + w6;
    w6 = 0x1.999999999999ap-4 * w6;
    w6 = w2 + w6;
    out[1] = w6;
    w1 = 0x1.999999999999ap-4 * w1;
    w5 = w5 * w1;
    w1 = v[0] + v[1];
    w1 = w1 * w1;
    w1 = 0x1.999999999999ap-4 * w1;
    w3 = w3 * w1;
    w5 = w5 - w3;
    w5 = 0x1.999999999999ap-2 * w5;
    w6 = w6 + w5;
    out[0] = w0 + w6;
}
