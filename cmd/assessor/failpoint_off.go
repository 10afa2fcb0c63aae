// SPDX-License-Identifier: Apache-2.0

//go:build !failpoints

package main

import (
	"github.com/plumbline-dev/plumbline/internal/executor"
)

// underFaults changes nothing: only a build with the tag failpoints can be made to
// fail on purpose.
func underFaults(*executor.Setup) error { return nil }
