// SPDX-License-Identifier: Apache-2.0

// Package view makes the pages of the console from values: kinds come in, and HTML that works without
// a script comes out.
//
//	kinds ──▶ FleetOf, DriftOf, ObjectOf, … ──▶ Page ──▶ Render ──▶ HTML
//
// A [Page] is a list of sections of tables, facts, lines and forms, so few templates serve all pages. The
// sentences are those of the packages wording and progress, which the plugin prints too.
//
// Names, reasons and values are chosen by others. html/template escapes them for their place, and
// [Render] replaces each character that hides or reorders text, so no page has to remember to.
package view
