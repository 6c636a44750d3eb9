/* A view of N numbers that belong to the caller: a pointer whose length is known when it is compiled.
 * It is made of arrays, of std::array, of std::span with an extent and of vectors of Eigen with a fixed size; of a
 * pointer, such as that of a std::vector, only explicitly: then N numbers must be there. */
template <class T, std::size_t N>
class View {
public:
    template <std::size_t M>
    constexpr View(T (&array)[M]) noexcept : data_(array)
    {
        static_assert(M == N, "the array has another length");
    }
    template <class Array, class = decltype(std::declval<Array &>().data()),
              class = std::enable_if_t<!std::is_same<std::decay_t<Array>, View>::value>>
    constexpr View(Array &&array) noexcept : data_(array.data())
    {
        static_assert(length<std::decay_t<Array>>(0) == N, "the array has another length, or one that is not fixed");
    }
    constexpr explicit View(T *data) noexcept : data_(data) {}

    constexpr T *data() const noexcept { return data_; }
    static constexpr std::size_t size() noexcept { return N; }
    constexpr T &operator[](std::size_t index) const noexcept { return data_[index]; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + N; }

    static constexpr std::size_t extent = N;

private:
    template <class Array, std::size_t M = std::tuple_size<Array>::value>
    static constexpr std::size_t length(int) noexcept
    {
        return M;
    }
    template <class Array, std::size_t M = Array::extent>
    static constexpr std::size_t length(long) noexcept
    {
        return M;
    }
    template <class Array, int M = Array::SizeAtCompileTime>
    static constexpr std::size_t length(...) noexcept
    {
        return M < 0 ? static_cast<std::size_t>(-1) : static_cast<std::size_t>(M);
    }

    T *data_;
};
