/* style.css and script.js as text, for the HTML report. */
#ifndef SW_SIM_REPORT_EMBED_H
#define SW_SIM_REPORT_EMBED_H

extern const char sw_report_style[];
extern const char sw_report_script[];

#endif
