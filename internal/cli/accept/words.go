// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

// refusalWords tells why an object is not accepted.
func refusalWords(r actions.AcceptRefusal) string {
	if r.Reason != actions.RefusedOtherFinding {
		return r.Reason.Words()
	}
	f := r.Finding
	return fmt.Sprintf("it also has %s by %s, first seen %s", invocation.Printable(wording.NamePath(f.Path)), invocation.Printable(wording.NameActor(f.Actor.User)), wording.FormatTimestamp(f.FirstSeenTime))
}

// acceptWords tells the outcome of a request to accept.
func acceptWords(o actions.AcceptOutcome) string {
	o.By = invocation.Printable(o.By)
	return o.Words()
}
