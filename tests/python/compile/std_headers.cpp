// Compares the C++ library headers that this package provides for compilers without them with the library
// itself.
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#define __host__
#define __device__
// The headers are included under another name. AMD's compilers get `move` and `forward` also.
#define std own
#define __HIP__
#define HIP_VERSION_MAJOR 7
#include OWN(limits)
#include OWN(type_traits)
#include OWN(array)
#include OWN(tuple)
#include OWN(functional)
#undef std

enum Plain { FIRST };
enum class Scoped : short { FIRST };
struct Empty {};
struct Data {
    int x;
    float y;
};
struct Derived : Data {};
struct Virtual {
    virtual void call() {}
    virtual ~Virtual() {}
};
struct Abstract {
    virtual void call() = 0;
};
struct Final final {};
union Either {
    int x;
    float y;
};
struct Kept {
    Kept() = delete;
    Kept(const Kept&) = delete;
    ~Kept() = delete;
};
struct Moved {
    Moved(Moved&&) {}
    Moved& operator=(Moved&&) { return *this; }
};
struct FromInt {
    explicit FromInt(int) {}
    operator float() const { return 0; }
};
struct Private {
private:
    Private() {}
    ~Private() {}
};
typedef int Method(int) const;
typedef int Function(int);

template <class...> struct Types {};
typedef Types<void, const void, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t, short,
              unsigned short, int, const int, volatile int, unsigned, long, const volatile unsigned long,
              long long, unsigned long long, float, double, const long double, std::nullptr_t, int&, const int&,
              int&&, const float&, int*, const int*, int* const, int* volatile, int* const volatile, void*, const void*, int[3],
              const int[3], int[], int[2][3], int (&)[3], Plain, Scoped, const Scoped, Empty, Data,
              const Data, Data*, Data&, Derived, Derived*, Derived&&, Virtual, Abstract, Abstract*, Final,
              Either, Kept, Kept&, Moved, FromInt, Private, Method, Function, Function*, Function&, int Data::*,
              int (Data::*)(int), int (Data::*)(int) const>
    All;

// Shows the name of a type in a failed assertion.
template <class...> struct Of {
    static constexpr bool equal(bool a, bool b) { return a == b; }
};
#define CHECK(condition, ...)                                                                   \
    static_assert(condition, #condition);                                                       \
    checks += 1;

static long checks, failures;

template <class T> struct Holds {
    typedef T type;
};
template <class M, class = void> struct Type {
    typedef Holds<void (*)(Type)> type;
};
template <class M> struct Type<M, std::void_t<typename M::type>> {
    typedef Holds<typename M::type> type;
};
// Returns true if both have the same member `type`, or if neither has one.
template <class A, class B> constexpr bool is_alike() {
    typedef typename Type<A>::type X;
    typedef typename Type<B>::type Y;
    return std::is_same_v<X, Y> ||
           (std::is_same_v<X, Holds<void (*)(Type<A>)>> && std::is_same_v<Y, Holds<void (*)(Type<B>)>>);
}

#define VALUE(name) CHECK(std::name<T>::value == own::name<T>::value)
#define MADE(name) CHECK((std::is_same_v<typename std::name<T>::type, typename own::name<T>::type>))
template <class T> void check_one() {
    VALUE(is_void) VALUE(is_null_pointer) VALUE(is_integral) VALUE(is_floating_point) VALUE(is_array)
    VALUE(is_pointer) VALUE(is_lvalue_reference) VALUE(is_rvalue_reference) VALUE(is_reference)
    VALUE(is_member_object_pointer) VALUE(is_member_function_pointer) VALUE(is_member_pointer)
    VALUE(is_enum) VALUE(is_union) VALUE(is_class) VALUE(is_function) VALUE(is_arithmetic)
    VALUE(is_fundamental) VALUE(is_object) VALUE(is_scalar) VALUE(is_compound) VALUE(is_const)
    VALUE(is_volatile) VALUE(is_trivial) VALUE(is_trivially_copyable) VALUE(is_standard_layout)
    VALUE(is_pod) VALUE(is_empty) VALUE(is_polymorphic) VALUE(is_abstract) VALUE(is_final)
    VALUE(has_virtual_destructor) VALUE(is_signed) VALUE(is_unsigned) VALUE(is_default_constructible)
    VALUE(is_copy_constructible) VALUE(is_move_constructible) VALUE(is_copy_assignable)
    VALUE(is_move_assignable) VALUE(is_trivially_default_constructible)
    VALUE(is_trivially_copy_constructible) VALUE(is_trivially_move_constructible)
    VALUE(is_trivially_copy_assignable) VALUE(is_trivially_move_assignable) VALUE(is_destructible)
    VALUE(is_trivially_destructible) VALUE(rank) VALUE(extent)
    CHECK((std::extent<T, 1>::value == own::extent<T, 1>::value))
    CHECK(std::is_void_v<T> == own::is_void_v<T>)
    MADE(remove_const) MADE(remove_volatile) MADE(remove_cv) MADE(remove_reference) MADE(remove_pointer)
    MADE(remove_extent) MADE(remove_all_extents) MADE(add_const) MADE(add_volatile) MADE(add_cv)
    MADE(add_lvalue_reference) MADE(add_rvalue_reference) MADE(add_pointer) MADE(decay)
    if constexpr (std::is_enum_v<T>) { MADE(underlying_type) MADE(make_signed) MADE(make_unsigned) }
    if constexpr (std::is_integral_v<T> && !std::is_same_v<std::remove_cv_t<T>, bool>) {
        CHECK(sizeof(std::make_signed_t<T>) == sizeof(own::make_signed_t<T>))
        CHECK(std::is_signed_v<own::make_signed_t<T>>)
        CHECK(std::is_unsigned_v<own::make_unsigned_t<T>>)
        CHECK(std::is_const_v<own::make_signed_t<T>> == std::is_const_v<T>)
        if constexpr (sizeof(T) < 8 || std::is_same_v<std::remove_cv_t<T>, unsigned long long>) {
            if constexpr (!std::is_same_v<T, wchar_t> && !std::is_same_v<T, char16_t> && !std::is_same_v<T, char32_t>) {
                MADE(make_signed) MADE(make_unsigned)
            }
        }
    }
    if constexpr (std::is_object_v<T> && !(std::is_array_v<T> && std::extent_v<T> == 0)) {
        CHECK(std::alignment_of<T>::value == own::alignment_of<T>::value)
    }
    CHECK((is_alike<std::common_type<T>, own::common_type<T>>()))
    CHECK((is_alike<std::invoke_result<T, int>, own::invoke_result<T, int>>()) || std::is_member_pointer_v<std::decay_t<T>>)
}

template <class T, class U> void check_two() {
    CHECK((std::is_same<T, U>::value == own::is_same<T, U>::value))
    CHECK((std::is_convertible<T, U>::value == own::is_convertible<T, U>::value))
    CHECK((std::is_constructible<T, U>::value == own::is_constructible<T, U>::value))
    CHECK((std::is_assignable<T, U>::value == own::is_assignable<T, U>::value))
    CHECK((std::is_base_of<T, U>::value == own::is_base_of<T, U>::value))
    CHECK((is_alike<std::common_type<T, U>, own::common_type<T, U>>()))
    CHECK((std::is_same_v<std::conditional_t<sizeof(Of<T, U>) == 1, T, U>, own::conditional_t<true, T, U>>))
}

// One in ONE_IN pairs of types is compared: each type with itself, and with others in both positions.
#ifndef ONE_IN
#define ONE_IN 1
#endif
template <class T, int first, int... second, class... Us>
void check_with(std::integer_sequence<int, second...>, Types<Us...>) {
    ([] { if constexpr ((first - second) % ONE_IN == 0) check_two<T, Us>(); }(), ...);
}
template <int... i, class... Ts> void check_all(std::integer_sequence<int, i...> places, Types<Ts...> all) {
    (check_one<Ts>(), ...);
    (check_with<Ts, i>(places, all), ...);
}
template <class... Ts> void check_all(Types<Ts...> all) {
    check_all(std::make_integer_sequence<int, sizeof...(Ts)>(), all);
}

template <class T> bool is_same_number(T x, T y) { return std::memcmp(&x, &y, sizeof x) == 0; }
#define RUN(condition)                                                                          \
    checks += 1;                                                                                \
    if (!(condition)) failures += 1, std::printf("%d: %s\n", __LINE__, #condition);
#define LIMIT(name) RUN((std::numeric_limits<T>::name == own::numeric_limits<T>::name))
#define LIMIT_OF(name) RUN(is_same_number(std::numeric_limits<T>::name(), own::numeric_limits<T>::name()))
template <class T> void check_limits() {
    LIMIT(is_specialized) LIMIT(is_signed) LIMIT(is_integer) LIMIT(is_exact) LIMIT(has_infinity)
    LIMIT(has_quiet_NaN) LIMIT(has_signaling_NaN) LIMIT(has_denorm_loss) LIMIT(is_iec559) LIMIT(is_bounded)
    LIMIT(is_modulo) LIMIT(traps) LIMIT(tinyness_before) LIMIT(digits) LIMIT(digits10)
    LIMIT(max_digits10) LIMIT(radix) LIMIT(min_exponent) LIMIT(min_exponent10) LIMIT(max_exponent)
    LIMIT(max_exponent10)
    RUN((int)std::numeric_limits<T>::has_denorm == (int)own::numeric_limits<T>::has_denorm)
    RUN((int)std::numeric_limits<T>::round_style == (int)own::numeric_limits<T>::round_style)
    LIMIT_OF(min) LIMIT_OF(max) LIMIT_OF(lowest) LIMIT_OF(epsilon) LIMIT_OF(round_error)
    LIMIT_OF(infinity) LIMIT_OF(quiet_NaN) LIMIT_OF(signaling_NaN) LIMIT_OF(denorm_min)
}
template <class... Ts> void check_all_limits() { (check_limits<Ts>(), ...); }

template <template <class...> class Theirs, template <class...> class Ours> void check_operator() {
    for (int x = -3; x <= 3; x++) {
        for (int y = 1; y <= 3; y++) {
            RUN(Theirs<int>()(x, y) == Ours<int>()(x, y))
            RUN(Theirs<void>()(x, y) == Ours<void>()(x, y))
        }
    }
}
template <class T, class U> void check_ordered(const T& a, const T& b, const U& c, const U& d) {
    RUN((a == b) == (c == d)) RUN((a != b) == (c != d)) RUN((a < b) == (c < d))
    RUN((a > b) == (c > d)) RUN((a <= b) == (c <= d)) RUN((a >= b) == (c >= d))
}

template <std::size_t... i> bool counts(own::index_sequence<i...>) {
    const std::size_t all[] = {i..., 0};
    for (std::size_t k = 0; k < sizeof...(i); k++) {
        if (all[k] != k) return false;
    }
    return true;
}

int main() {
    check_all(All());
    check_all_limits<bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t, short, unsigned short,
                     int, unsigned, long, unsigned long, long long, unsigned long long, float, double,
                     const int, volatile float, const volatile double>();
#define OPERATOR(name) check_operator<std::name, own::name>();
    OPERATOR(plus) OPERATOR(minus) OPERATOR(multiplies) OPERATOR(divides) OPERATOR(modulus)
    OPERATOR(bit_and) OPERATOR(bit_or) OPERATOR(bit_xor) OPERATOR(equal_to) OPERATOR(not_equal_to)
    OPERATOR(less) OPERATOR(greater) OPERATOR(less_equal) OPERATOR(greater_equal)
    OPERATOR(logical_and) OPERATOR(logical_or)
    for (int x = -3; x <= 3; x++) {
        RUN(std::negate<int>()(x) == own::negate<int>()(x)) RUN(own::negate<>()(x) == -x)
        RUN(std::bit_not<int>()(x) == own::bit_not<int>()(x)) RUN(own::bit_not<>()(x) == ~x)
        RUN(std::logical_not<int>()(x) == own::logical_not<int>()(x)) RUN(own::logical_not<>()(x) == !x)
    }
    RUN((std::is_same_v<decltype(own::plus<>()(1, 2.5)), double>))

    for (int i = 0; i < 81; i++) {
        const int a = i % 3, b = i / 3 % 3, c = i / 9 % 3, d = i / 27;
        check_ordered(std::make_pair(a, b), std::make_pair(c, d), own::make_pair(a, b), own::make_pair(c, d));
        check_ordered(std::make_tuple(a, b), std::make_tuple(c, d), own::make_tuple(a, b), own::make_tuple(c, d));
        check_ordered(std::array<int, 2>{a, b}, std::array<int, 2>{c, d}, own::array<int, 2>{a, b},
                      own::array<int, 2>{c, d});
    }
    check_ordered(std::tuple<>(), std::tuple<>(), own::tuple<>(), own::tuple<>());

    own::pair<int, own::pair<float, char>> nested(1, own::make_pair(2.5f, 'x'));
    own::get<1>(nested).first = 4;
    RUN(own::get<0>(nested) == 1 && nested.second.first == 4 && own::get<1>(own::get<1>(nested)) == 'x')
    own::pair<long, double> wider(own::make_pair(7, 2.5f)), other;
    RUN(wider.first == 7 && wider.second == 2.5 && other.first == 0 && other.second == 0)
    other = own::make_pair(3, 4);
    swap(wider, other);
    RUN(wider.first == 3 && other.first == 7)
    other.swap(wider);
    RUN(wider.first == 7 && wider.second == 2.5)

    int x = 1;
    double y = 2;
    own::tuple<int, double> values(5, 6.5);
    own::tie(x, y) = values;
    RUN(x == 5 && y == 6.5)
    own::tie(y, x) = own::make_tuple(x, y);
    own::tie(x, y) = own::make_pair(8, 9.5);
    RUN(x == 8 && y == 9.5)
    own::get<0>(values) = 11;
    RUN(own::get<0>(values) == 11 && own::get<1>(values) == 6.5)
    own::tuple<float, long> of_pair(own::make_pair(1, 2)), of_tuple(values);
    RUN(own::get<1>(of_pair) == 2 && own::get<0>(of_tuple) == 11)
    RUN((!std::is_constructible_v<own::tuple<int, int>, int> && !std::is_constructible_v<own::tuple<int*>, float>))
    own::tuple<own::tuple<int>, own::tuple<int, int>> inner(own::make_tuple(1), own::make_tuple(2, 3));
    RUN(own::get<0>(own::get<0>(inner)) == 1 && own::get<1>(own::get<1>(inner)) == 3)
    own::tuple<int> single(4), copy(single);
    own::tuple<long> longer(single);
    RUN(own::get<0>(copy) == 4 && own::get<0>(longer) == 4)
    copy = own::tuple<int>(9);
    RUN(copy == own::make_tuple(9))
    RUN(own::apply([](int a, double b) { return a * b; }, values) == 71.5)
    RUN((own::tuple_size<own::tuple<int, char, long>>::value == 3))
    RUN((std::is_same_v<own::tuple_element_t<2, const own::tuple<int, char, long>>, const long>))
    RUN((std::is_same_v<decltype(own::make_tuple(1, "x", x)), own::tuple<int, const char*, int>>))
    RUN((std::is_same_v<decltype(own::forward_as_tuple(1, x)), own::tuple<int&&, int&>>))
    constexpr auto constant = own::make_tuple(1, 2.5f);
    static_assert(own::get<1>(constant) == 2.5f, "a constant");

    own::array<int, 5> items = {{5, 4, 3, 2, 1}}, filled;
    filled.fill(7);
    swap(items, filled);
    int sum = 0;
    for (int item : filled) sum += item;
    RUN(sum == 15 && items.front() == 7 && filled.back() == 1 && filled.size() == 5 && own::get<1>(filled) == 4)
    own::array<int, 0> none = {};
    RUN(none.empty() && none.begin() == none.end())
    own::array three{1, 2, 3};
    RUN(three[0] == 1 && three.size() == 3 && three.data()[2] == *(three.cend() - 1))

    RUN(own::exchange(x, 20) == 8 && x == 20)
    int rows[2][2] = {{1, 2}, {3, 4}};
    own::swap(rows[0], rows[1]);
    RUN(rows[0][0] == 3 && rows[1][1] == 2)
    RUN(counts(own::make_index_sequence<0>()) && counts(own::make_index_sequence<1>()) &&
        counts(own::make_index_sequence<137>()) && own::make_index_sequence<137>::size() == 137)
    RUN((std::is_same_v<decltype(own::move(x)), int&&>))
    RUN((std::is_same_v<decltype(own::forward<int&>(x)), int&>))
    RUN((std::is_same_v<decltype(own::as_const(x)), const int&>))
    RUN((own::conjunction_v<own::true_type, own::is_void<void>> && !own::conjunction_v<own::false_type, int>))
    RUN((own::disjunction_v<own::false_type, own::is_void<void>> && !own::disjunction_v<>))
    RUN((own::negation_v<own::false_type>))
    RUN((std::is_same_v<own::common_type_t<char, int, float>, float>))
    RUN((own::is_invocable_v<Function*, short> && !own::is_invocable_v<Function*, int*>))
    RUN((sizeof(own::aligned_storage_t<24, 8>) == 24 && alignof(own::aligned_storage_t<24, 8>) == 8))
    std::printf("%ld checks\n", checks);
    return failures != 0;
}
