// SPDX-License-Identifier: Apache-2.0

package connectors

import (
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// row is one line of the table: an ability, and its value for a connector.
type row struct {
	ability string
	value   func(Connector) string
}

var rows = []row{
	{"Carried out by", func(c Connector) string { return c.Carries }},
	named(traffic.CapabilityKnowledge, func(c Connector) string { return string(c.Knowledge) + ": " + c.Proof }),
	named(traffic.CapabilityResolution, func(c Connector) string { return c.Resolution.Percent() + " %" }),
	named(traffic.CapabilitySticky, has(func(c Connector) bool { return c.Sticky })),
	named(traffic.CapabilityAnonymousVisitors, has(func(c Connector) bool { return c.AnonymousVisitors })),
	named(traffic.CapabilityHeaderMap, has(func(c Connector) bool { return c.HeaderMap })),
	named(traffic.CapabilityOverride, has(func(c Connector) bool { return c.Override })),
	named(traffic.CapabilityOutcomes, has(func(c Connector) bool { return c.Outcomes })),
	named(traffic.CapabilityInFlight, has(func(c Connector) bool { return c.InFlight })),
	named(traffic.CapabilityRollbackWithoutAPIServer, has(func(c Connector) bool { return c.RollbackWithoutAPIServer })),
	{"Versions tested", func(c Connector) string { return c.Versions }},
}

func named(capability traffic.Capability, value func(Connector) string) row {
	return row{"`" + string(capability) + "`", value}
}

func has(is func(Connector) bool) func(Connector) string {
	return func(c Connector) string {
		if is(c) {
			return "yes"
		}
		return "no"
	}
}

// Table returns the connectors as a table of Markdown, with a column for each.
func Table(of []Connector) string {
	var table strings.Builder
	line := func(cells ...string) { table.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head, rule := []string{"Capability"}, []string{"---"}
	for _, c := range of {
		head, rule = append(head, c.Name), append(rule, "---")
	}
	line(head...)
	line(rule...)
	for _, r := range rows {
		cells := []string{r.ability}
		for _, c := range of {
			cells = append(cells, r.value(c))
		}
		line(cells...)
	}
	return table.String()
}
