// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"github.com/plumbline-dev/plumbline/internal/options"
)

// Options are the flags of a process that tells people.
type Options = options.Egress
