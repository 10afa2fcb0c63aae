// SPDX-License-Identifier: Apache-2.0

// Package wording has the words in which Plumbline speaks of Baselines, plans, policies and
// assessments, so that the plugin and the console say the same.
//
// The functions are pure. A text may hold names and values that others have chosen: each printer makes
// it safe for the place where the text is shown. Package progress has the words about runs of releases.
package wording
