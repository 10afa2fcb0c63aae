// SPDX-License-Identifier: Apache-2.0

package authority

// Place is what counts of a namespace.
type Place struct {
	// Original says that it is Plumbline's own, where the original is.
	Original bool
	// Ending says that it is being deleted.
	Ending bool
	// Injects says that its pods get proxies.
	Injects bool
	// Proxies says that a pod in it has one, whatever the namespace says.
	Proxies bool
}

// wants says that pods in it cannot start without a copy.
func (p Place) wants() bool { return p.Injects || p.Proxies }

// Present is what counts of the ConfigMap that is there.
type Present struct {
	// Ours says that it carries our label.
	Ours bool
	// Bundle is what pods read.
	Bundle string
	// More says that there is something in it beside the bundle.
	More bool
	// Immutable ones can only be replaced.
	Immutable bool
}

// Action is what becomes of a copy.
type Action int

// The actions.
const (
	// Leave it, or its absence, as it is.
	Leave Action = iota
	// Make it.
	Make
	// Mend what is in it.
	Mend
	// Remove it.
	Remove
	// Replace it: it cannot be mended.
	Replace
	// Report that somebody else's is where it should be.
	Report
)

func (a Action) String() string {
	switch a {
	case Leave:
		return "leave"
	case Make:
		return "make"
	case Mend:
		return "mend"
	case Remove:
		return "remove"
	case Replace:
		return "replace"
	case Report:
		return "report"
	default:
		return "unknown"
	}
}

// Decide says what becomes of the ConfigMap in a namespace, which is nil when there
// is none. An empty bundle is one that is not known: then what is there stays.
func Decide(place Place, present *Present, bundle string) Action {
	switch {
	case place.Original || place.Ending:
		return Leave
	case present != nil && !present.Ours:
		if place.wants() {
			return Report
		}
		return Leave
	case !place.wants():
		if present != nil {
			return Remove
		}
		return Leave
	case bundle == "":
		return Leave
	case present == nil:
		return Make
	case present.Bundle == bundle && !present.More:
		return Leave
	case present.Immutable:
		return Replace
	default:
		return Mend
	}
}
