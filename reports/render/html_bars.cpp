// Bars of the HTML page, as SVG without scripts.
#include "reports/render/escape.h"
#include "reports/render/html_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

constexpr double bar_width = 1000, bar_height = 20;  // of the picture, stretched to its cell
constexpr double arrow = 12;                         // length of an arrow's head

double place(double fraction) { return bar_width * std::clamp(fraction, 0.0, 1.0); }

std::string rectangle(const std::string& kind, double from, double to, double top, double bottom) {
  return fmt::format("<rect class={} x={} y={} width={} height={} />", kind, short_number(place(from)), top,
                     short_number(std::max(0.0, place(to) - place(from))), bottom - top);
}

std::string svg(const BarRow& row) {
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=none aria-hidden=true>", bar_width, bar_height);
  out += rectangle("scale", 0, 1, 0, bar_height);
  if (row.reference) out += rectangle("reference", row.reference->low, row.reference->high, 0, bar_height);
  double from = 0;
  for (std::size_t i = 0; i < row.parts.size(); ++i) {
    out += rectangle(fmt::format("p{}", i), from, from + row.parts[i], 4, bar_height - 4);
    from += row.parts[i];
  }
  for (std::size_t i = 0; i < row.strip.size(); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "<path class=strip d=\"M" : "L",
                       short_number(bar_width * static_cast<double>(i) / static_cast<double>(row.strip.size() - 1)),
                       short_number(bar_height - 1 - (bar_height - 2) * std::clamp(row.strip[i], 0.0, 1.0)));
  if (!row.strip.empty()) out += "\" />";
  if (row.usual)
    out += fmt::format("<path class=usual d=\"M{} 19H{}\" />", short_number(place(row.usual->low)),
                       short_number(place(row.usual->high)));
  if (row.range) {
    // Vertical caps, or arrows at ends beyond the scale.
    const double low = place(row.range->low), high = place(row.range->high);
    out += fmt::format("<path class=range d=\"M{0} 6L{1} 10L{0} 14M{2} 6L{3} 10L{2} 14M{1} 10H{3}\" />",
                       short_number(row.range->low < 0 ? low + arrow : low), short_number(low),
                       short_number(row.range->high > 1 ? high - arrow : high), short_number(high));
  }
  for (const Interval& one : row.published) {
    const std::string low = short_number(place(one.low)), high = short_number(place(one.high));
    out += fmt::format("<path class=published d=\"M{0} 0V5M{0} 15V20{2}M{1} 0V5M{1} 15V20\" />", low, high,
                       low == high ? "" : fmt::format("M{0} 1H{1}M{0} 19H{1}", low, high));
  }
  if (row.peak) out += fmt::format("<path class=peak d=\"M{0} 0V{1}\" />", short_number(place(*row.peak)), bar_height);
  return out + "</svg>";
}

}  // namespace

void bars_html(std::string& out, const Bars& bars, Ids& ids) {
  if (bars.rows.empty()) return;
  const bool stacked = !bars.parts.empty();
  out += fmt::format("<figure class=\"bars{}\"{}>\n", stacked ? " stacked" : "", ids.attribute(bars.id));
  if (!bars.title.empty()) out += fmt::format("<figcaption>{}</figcaption>\n", html_escape(bars.title));
  if (stacked) {
    out += "<ul class=keys>\n";
    for (std::size_t i = 0; i < bars.parts.size(); ++i)
      out += fmt::format(
          "<li><svg class=key viewBox=\"0 0 1 1\" aria-hidden=true><rect class=p{} width=1 height=1 />"
          "</svg>{}</li>\n",
          i, html_escape(bars.parts[i]));
    out += "</ul>\n";
  }
  out += "<table>\n<tbody>\n";
  for (const BarRow& row : bars.rows) {
    const std::string target = ids.target(row.link);
    const std::string label = html_escape(row.label);
    out += fmt::format("<tr><th scope=row>{}<td>{}<td>{}\n",
                       target.empty() ? label : fmt::format("<a href=#{}>{}</a>", target, label), svg(row),
                       html_escape(row.text));
  }
  out += "</table>\n";
  const bool cut = std::ranges::any_of(
      bars.rows, [](const BarRow& row) { return row.range && (row.range->low < 0 || row.range->high > 1); });
  const std::string note = bars.note + (cut ? " Arrow: the interval goes beyond the scale." : "");
  if (!note.empty()) out += fmt::format("<p class=faint>{}</p>\n", html_escape(note));
  out += "</figure>\n";
}

}  // namespace assay::report
