// SPDX-License-Identifier: Apache-2.0

//go:build !failpoints

package main

import (
	"github.com/plumbline-dev/plumbline/internal/controller/execute"
)

// underFaults changes nothing: only a build with the tag failpoints can be made to
// fail on purpose.
func underFaults(*execute.Setup) error { return nil }
