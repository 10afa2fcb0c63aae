// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/plumbline-dev/plumbline/internal/controller/abrelease"
	"github.com/plumbline-dev/plumbline/internal/discovery"
)

// timesVariable names the environment variable that shortens times. Only a build with the
// tag failpoints reads it.
const timesVariable = "PLUMBLINE_TIMES"

// times are how long the parts of the process wait; those of production where they are
// zero.
type times struct {
	mesh      discovery.Times
	abrelease abrelease.Times
}
