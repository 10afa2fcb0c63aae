// SPDX-License-Identifier: Apache-2.0

// Package figures makes metrics of what the assessor knows as a whole: who
// leads, how old the oldest statement may be, what the Baselines say together,
// and whether some object is written in a loop.
//
// Nothing is kept that is known elsewhere: [Fleet] and [Freshness] compute their
// figures when they are asked for. No object is named in a label; the log names it.
package figures
