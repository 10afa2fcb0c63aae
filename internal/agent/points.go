// SPDX-License-Identifier: Apache-2.0

package agent

// Point is a moment between two steps at which an agent may end.
type Point string

// The points, in order.
const (
	AfterCheck   Point = "after-check"
	AfterFiles   Point = "after-files"
	AfterReload  Point = "after-reload"
	AfterStore   Point = "after-store"
	BeforeAnswer Point = "before-answer"
)

// Points are all of them.
func Points() []Point { return []Point{AfterCheck, AfterFiles, AfterReload, AfterStore, BeforeAnswer} }
