// SPDX-License-Identifier: Apache-2.0

package effect

// Best is the highest score, in basis points. The lowest is 0.
const Best = 10_000

// Name of a component.
type Name string

// The components.
const (
	Health  Name = "Health"
	Alerts  Name = "Alerts"
	Metrics Name = "Metrics"
)

// names of all components, in the order in which they are told.
var names = [...]Name{Health, Alerts, Metrics}

// State says whether a component was assessed.
type State string

// The states.
const (
	// NotAssessed has no answer yet.
	NotAssessed State = ""
	// Assessed has an answer. Its score is absent where the question has none, such as the
	// health of a kind without pods.
	Assessed State = "Assessed"
	// NotConfigured is a source that the installation does not name.
	NotConfigured State = "NotConfigured"
	// NotAnswered is a source that was asked, and whose answer does not count.
	NotAnswered State = "NotAnswered"
)

// Component is what is known of one component.
type Component struct {
	State State
	// Score in basis points; nil where there is none.
	Score *int32
	// Bad says that the component speaks against the write by itself: the alert still fires, a
	// metric is worse than during the drift, or no pod is ready.
	Bad bool
	// Why is for people.
	Why string
}

// ends says that the component is asked for no further.
func (c Component) ends() bool {
	switch c.State {
	case Assessed, NotConfigured:
		return true
	case NotAssessed, NotAnswered:
	}
	return false
}

// Components are all that is known of the effect of a write.
type Components struct {
	Health, Alerts, Metrics Component
}

// Of returns a component by its name.
func (c *Components) Of(name Name) *Component {
	switch name {
	case Health:
		return &c.Health
	case Alerts:
		return &c.Alerts
	case Metrics:
		return &c.Metrics
	}
	panic("effect: no component is named " + string(name))
}

// Missing returns the components that have no answer, of those that are configured.
func (c *Components) Missing() (missing []Name) {
	for _, name := range names {
		if !c.Of(name).ends() {
			missing = append(missing, name)
		}
	}
	return missing
}

// assessed counts the components that have an answer.
func (c *Components) assessed() (n int) {
	for _, name := range names {
		if c.Of(name).State == Assessed {
			n++
		}
	}
	return n
}
