/* Written by Torsor: checks that the compiled code returns the numbers that Torsor computed during the export. */
#include <cmath>
#include <cstdio>

#include "@package@/compensator.hpp"

int main()
{
    using @package@::Vector;
    const Vector q{{@q@}}, v{{@v@}}, a{{@a@}}, wanted{{@tau@}};
    Vector tau{};
    @package@::model::inverse_dynamics(q, v, a, tau);
    double largest = 0.0, off = 0.0;
    for (std::size_t k = 0; k < tau.size(); ++k) {
        largest = std::fmax(largest, std::fabs(wanted[k]));
        off = std::fmax(off, std::fabs(tau[k] - wanted[k]));
    }
    std::printf("largest difference %g of %g\n", off, largest);
    return off <= 1e-12 * largest ? 0 : 1;
}
