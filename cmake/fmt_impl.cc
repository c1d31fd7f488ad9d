// SPDX-License-Identifier: Apache-2.0
// The compiled half of fmt, for distributions that ship no libfmt.a (Debian).
// Header-only fmt would be compiled again in every source file: four seconds
// instead of one. fmt.cmake tries this against the fmt that is installed and
// falls back to header-only where it does not link.
#include <fmt/format-inl.h>

// Explicit instantiation of the templates that fmt/format.h declares extern.
FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto dragonbox::to_decimal(float) noexcept
    -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double) noexcept
    -> dragonbox::decimal_fp<double>;
template FMT_API locale_ref::locale_ref(const std::locale&);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API auto thousands_sep_impl(locale_ref)
    -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API void buffer<char>::append(const char*, const char*);
template FMT_API void vformat_to(buffer<char>&, string_view,
                                 basic_format_args<FMT_BUFFER_CONTEXT(char)>,
                                 locale_ref);
}  // namespace detail
FMT_END_NAMESPACE
