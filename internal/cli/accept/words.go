// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

// refusalWords tells why an object is not accepted.
func refusalWords(r actions.AcceptRefusal) string {
	switch r.Reason {
	case actions.RefusedUnobserved:
		return "no observed state to accept"
	case actions.RefusedInSync:
		return "is in sync: there is no change to accept"
	case actions.RefusedRetired:
		return "is retired: there is no state to accept"
	case actions.RefusedNotGuarded:
		return "no guard selects it any more: there is no state to accept"
	case actions.RefusedUnlisted:
		return "it has findings that are not listed, so that the filters cannot be applied"
	case actions.RefusedUnmatched:
		return "no finding matches"
	case actions.RefusedOtherFinding:
		f := r.Finding
		return fmt.Sprintf("it also has %s by %s, first seen %s", invocation.Printable(invocation.NamePath(f.Path)), invocation.Printable(invocation.NameActor(f.Actor.User)), invocation.FormatTimestamp(f.FirstSeenTime))
	case actions.RefusedUnknown:
		return "its state is unknown, and only an observed state can be accepted"
	default:
		return string(r.Reason)
	}
}

// acceptWords tells what became of a request to accept.
func acceptWords(o actions.AcceptOutcome) string {
	switch o.Reason {
	case actions.AcceptedRevision:
		return fmt.Sprintf("accepted (revision %d)", o.Revision)
	case actions.AcceptedRetired:
		return "retired"
	case actions.AcceptedTooLarge:
		return "accepted, and too large to be kept: its state is Unknown until it is smaller"
	case actions.AcceptBaselineRemoved:
		return "its Baseline was removed meanwhile"
	case actions.AcceptSuperseded:
		return invocation.Printable(o.By) + " has asked for another state since"
	case actions.AcceptForbidden:
		return o.Message
	case actions.AcceptOutdated:
		return "it changed before the request was seen; look again and accept the present state"
	default:
		return string(o.Reason)
	}
}
