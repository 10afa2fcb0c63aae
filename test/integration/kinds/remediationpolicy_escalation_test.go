// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

func escalationCases() map[string]specCase {
	const conditions, age, severity = "spec.escalation.remediateWhenAny", "spec.escalation.remediateWhenAny.minimumDriftAge", "spec.escalation.remediateWhenAny.minimumSeverity"
	const first = "people would never be told first"
	return map[string]specCase{
		"an escalation by age and severity is accepted":                {spec: "escalation: {remediateWhenAny: {minimumDriftAge: 2h, minimumSeverity: Critical}}"},
		"an escalation by age alone, within the ages, is accepted":     {spec: "{minimumDriftAge: 15m, maximumDriftAge: 24h, escalation: {initialAction: NotifyOnly, remediateWhenAny: {minimumDriftAge: 2h}}}"},
		"an escalation to a severity above a lower minimum":            {spec: "{minimumSeverity: Low, escalation: {remediateWhenAny: {minimumSeverity: Medium}}}"},
		"an escalation without conditions is refused":                  {"escalation: {}", []string{conditions}, "Required value"},
		"an escalation of empty conditions is refused":                 {"escalation: {remediateWhenAny: {}}", []string{conditions}, "name minimumDriftAge, minimumSeverity, or both"},
		"an initial action that writes is refused":                     {"escalation: {initialAction: Restart, remediateWhenAny: {minimumDriftAge: 2h}}", []string{"spec.escalation.initialAction"}, `supported values: "NotifyOnly"`},
		"an escalation to NotifyOnly is refused":                       {"{action: NotifyOnly, escalation: {remediateWhenAny: {minimumDriftAge: 2h}}}", []string{"spec.escalation"}, "set action to Reconcile, Rollback, Scale, or Restart, or leave escalation out"},
		"an escalation at the least age is refused":                    {"{minimumDriftAge: 15m, escalation: {remediateWhenAny: {minimumDriftAge: 900s}}}", []string{age}, first + ": set an age above spec.minimumDriftAge"},
		"an escalation at the greatest age is refused":                 {"{maximumDriftAge: 24h, escalation: {remediateWhenAny: {minimumDriftAge: 24h}}}", []string{age}, "set an age below spec.maximumDriftAge"},
		"an escalation at the least severity is refused":               {"escalation: {remediateWhenAny: {minimumSeverity: High}}", []string{severity}, first + ": set a severity above spec.minimumSeverity, which is High by default"},
		"an escalation below a least severity of one's own is refused": {"{minimumSeverity: Medium, escalation: {remediateWhenAny: {minimumSeverity: Low}}}", []string{severity}, first},
		"an escalation at no age is refused":                           {"escalation: {remediateWhenAny: {minimumDriftAge: 0s}}", []string{age}, "a duration such as 2h, from more than 0s to 8760h"},
		"an escalation to an unknown severity is refused":              {"escalation: {remediateWhenAny: {minimumSeverity: Fatal}}", []string{severity}, "Unsupported value"},
	}
}
