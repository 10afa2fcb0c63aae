// SPDX-License-Identifier: Apache-2.0

package router

import "github.com/plumbline-dev/plumbline/internal/cli/clitest"

var verbs = []clitest.Verb{Command}
