// SPDX-License-Identifier: Apache-2.0

// Package severity says how much a drift matters, and why.
//
// [Score] rates one finding. Five factors, each 0 to 100, are weighted 30, 25,
// 20, 15 and 10 percent; the sum is cut to a whole number, and a band gives the
// level: Critical from 90, High from 70, Medium from 45, Low from 20, else Info.
// A score alone rates a fresh change of an image as Medium even in production,
// so the class of the finding sets a floor under the level: as it is in
// Production, one level lower in Staging, none elsewhere. The level is the
// higher of band and floor. The tables are in docs/reference/severity.md.
//
// [Worst] picks the severity of an object from those of its findings, and
// [Dependents] counts the blast radius in the graph of an Environment.
//
// All of it is integer arithmetic on values: the same drift has the same
// severity on every machine, and the caller brings the age.
package severity
