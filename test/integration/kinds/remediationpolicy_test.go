// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

const smallestPolicy = `{environmentName: production, trigger: Immediate, action: Reconcile}`

// policyDefaults are what a policy is that says nothing: it only watches, and
// once it acts it acts on one object at a time.
var policyDefaults = map[string]any{
	"mode": "ObserveOnly", "minimumSeverity": "High", "strategy": "Rolling",
	"safety": map[string]any{
		"maxConcurrent": int64(1), "maxPerHour": int64(10), "maxPerDay": int64(50), "cooldown": "5m",
		"maxTargets": int64(10), "maxTargetPercent": int64(25), "minHealthyPercent": int64(75),
		"circuitBreaker": map[string]any{"failureThreshold": int64(3), "openDuration": "30m"},
	},
	"health":     map[string]any{"stabilization": "10s", "timeout": "10m"},
	"exceptions": map[string]any{"unattributed": "Forbidden", "gitOps": "Forbidden", "activeWriter": "Forbidden", "recreate": "Forbidden"},
	"notifications": map[string]any{
		"onPlanCreated": "IfWaiting", "onStarted": "Disabled", "onCompleted": "Enabled", "onFailed": "Enabled", "onEscalated": "Enabled", "onIneffective": "Enabled",
	},
}

func TestRemediationPolicy_Fields(t *testing.T) {
	cases := map[string]specCase{
		"the smallest policy is accepted":  {},
		"no kind at all is refused":        {"resources: []", []string{"spec.resources"}, "should have at least 1 items"},
		"another environment is forbidden": {"environmentName: 'pro duction'", []string{"spec.environmentName"}, "should match"},
	}
	for _, more := range []map[string]specCase{
		resourceCases(16), selectorCases("selector", "leave it out to select every guarded object of the environment"),
		modeCases(), actionCases(), safetyCases(), scheduleCases(), healthCases(), channelCases(), exceptionCases(), escalationCases(), effectivenessCases(),
		questionCases("spec.effectiveness", func(fields string) string { return "effectiveness: {" + fields + "}" }),
	} {
		maps.Copy(cases, more)
	}
	// Tried by TestRemediationPolicy_Transitions, because it needs a stored policy.
	runSpecCases(t, "RemediationPolicy", smallestPolicy, cases)
	cases["the environmentName is immutable"] = specCase{"", []string{"spec.environmentName"}, environmentIsImmutable}
	cases["a service account comes first"] = specCase{"", []string{"spec.serviceAccountName"}, accountComesFirst}
	demandEveryRuleTried(t, "RemediationPolicy", "spec", cases)
}

func modeCases() map[string]specCase {
	return map[string]specCase{
		"an active policy with a name is accepted":           {spec: "{mode: Active, requestedBy: alice}"},
		"a halted policy without a name is accepted":         {spec: "mode: Halted"},
		"an active policy of nobody is refused":              {"mode: Active", []string{"spec.requestedBy"}, "an active policy acts with the permissions of one user: name yourself"},
		"an active policy of an empty name is refused":       {"{mode: Active, requestedBy: ''}", []string{"spec.requestedBy"}, "should be at least 1 chars"},
		"a name of 1 MiB is refused":                         {"requestedBy: " + strings.Repeat("u", 1<<20), []string{"spec.requestedBy"}, "may not be more than 1024"},
		"groups beside the name are accepted":                {spec: "{mode: Active, requestedBy: alice, requestedByGroups: [sre, ops]}"},
		"a group twice is refused":                           {"requestedByGroups: [sre, sre]", []string{"spec.requestedByGroups[1]"}, "Duplicate value"},
		"an empty group is refused":                          {"requestedByGroups: ['']", []string{"spec.requestedByGroups[0]"}, "should be at least 1 chars"},
		"more groups than anybody names are refused":         {"requestedByGroups: [" + repeat(33, "g%d") + "]", []string{"spec.requestedByGroups"}, "must have at most 32 items"},
		"an active policy of a service account is accepted":  {spec: "{mode: Active, serviceAccountName: shop/repairs}"},
		"a policy that watches, of a service account":        {spec: "serviceAccountName: shop/repairs"},
		"a service account with dots is accepted":            {spec: "serviceAccountName: shop/repairs.v2"},
		"a service account beside a user is refused":         {"{mode: Active, requestedBy: alice, serviceAccountName: shop/repairs}", []string{"spec.serviceAccountName"}, "remove serviceAccountName, or requestedBy and requestedByGroups"},
		"a service account beside a user who watches":        {"{requestedBy: alice, serviceAccountName: shop/repairs}", []string{"spec.serviceAccountName"}, "remove serviceAccountName"},
		"a service account beside groups is refused":         {"{mode: Active, requestedByGroups: [sre], serviceAccountName: shop/repairs}", []string{"spec.serviceAccountName"}, "remove serviceAccountName"},
		"an active policy of groups alone is refused":        {"{mode: Active, requestedByGroups: [sre]}", []string{"spec.requestedBy"}, "or set serviceAccountName in a policy that a tool applies from Git"},
		"a service account without a namespace is refused":   {"serviceAccountName: repairs", []string{"spec.serviceAccountName"}, "should match"},
		"a service account of an empty namespace is refused": {"serviceAccountName: /repairs", []string{"spec.serviceAccountName"}, "should match"},
		"a service account of an empty name is refused":      {"serviceAccountName: shop/", []string{"spec.serviceAccountName"}, "should match"},
		"a service account with two namespaces is refused":   {"serviceAccountName: shop/web/repairs", []string{"spec.serviceAccountName"}, "should match"},
		"a service account by its user name is refused":      {"serviceAccountName: 'system:serviceaccount:shop:repairs'", []string{"spec.serviceAccountName"}, "should match"},
		"a namespace with a colon is refused":                {"serviceAccountName: 'shop:x/repairs'", []string{"spec.serviceAccountName"}, "should match"},
		"a service account of an empty text is refused":      {"serviceAccountName: ''", []string{"spec.serviceAccountName"}, "should be at least 3 chars"},
		"a service account longer than a record names":       {"serviceAccountName: shop/" + strings.Repeat("r", 230), []string{"spec.serviceAccountName"}, "may not be more than 234"},
		"a mode that is none is refused":                     {"mode: Enforce", []string{"spec.mode"}, `supported values: "ObserveOnly", "Active", "Halted"`},
		"the seed's spelling of a mode is refused":           {"mode: observe_only", []string{"spec.mode"}, "Unsupported value"},
		"no environment is refused":                          {"environmentName: null", []string{"spec.environmentName"}, "Required value"},
		"several environments are refused":                   {"environmentName: [a, b]", []string{"spec.environmentName"}, "must be of type string"},
		"a selector of everything is refused":                {"selector: {}", []string{"spec.selector"}, "an empty selector selects everything"},
		"severity Info is accepted":                          {spec: "minimumSeverity: Info"},
		"an unknown severity is refused":                     {"minimumSeverity: Fatal", []string{"spec.minimumSeverity"}, "Unsupported value"},
		"ages in their order are accepted":                   {spec: "{minimumDriftAge: 15m, maximumDriftAge: 24h}"},
		"an age of nothing is accepted":                      {spec: "minimumDriftAge: 0s"},
		"a maximum below the minimum is refused":             {"{minimumDriftAge: 1h, maximumDriftAge: 59m59s}", []string{"spec.maximumDriftAge"}, "a drift would be too old before it is old enough"},
		"a maximum equal to the minimum is refused":          {"{minimumDriftAge: 60m, maximumDriftAge: 1h}", []string{"spec.maximumDriftAge"}, "a drift would be too old before it is old enough"},
		"a negative age is refused":                          {"minimumDriftAge: -15m", []string{"spec.minimumDriftAge"}, "a duration such as 15m, from 0s to 8760h"},
		"an age of more than a year is refused":              {"minimumDriftAge: 8761h", []string{"spec.minimumDriftAge"}, "from 0s to 8760h"},
		"an age in days is refused":                          {"minimumDriftAge: 1d", []string{"spec.minimumDriftAge"}, "a duration such as 15m"},
		"a maximum of seconds is refused":                    {"maximumDriftAge: 59s", []string{"spec.maximumDriftAge"}, "a duration such as 24h, from 1m to 8760h"},
		"a maximum of more than a year is refused":           {"maximumDriftAge: 8760h1s", []string{"spec.maximumDriftAge"}, "from 1m to 8760h"},
		"a maximum that is negative is refused":              {"maximumDriftAge: -1h", []string{"spec.maximumDriftAge"}, "from 1m to 8760h"},
		"an age of 1 MiB digits is refused":                  {"minimumDriftAge: '" + strings.Repeat("9", 1<<20) + "s'", []string{"spec.minimumDriftAge"}, "may not be more than 32"},
		"an age that overflows what durations hold, refused": {"minimumDriftAge: 999999h", []string{"spec.minimumDriftAge"}, "from 0s to 8760h"},
	}
}

func actionCases() map[string]specCase {
	cases := map[string]specCase{
		"BlueGreen with labels for the standby":         {spec: "{strategy: BlueGreen, standby: {podLabels: {app: standby}}}"},
		"BlueGreen that rolls back is accepted":         {spec: "{strategy: BlueGreen, action: Rollback, standby: {podLabels: {app: standby}}}"},
		"BlueGreen without a standby is refused":        {"strategy: BlueGreen", []string{"spec.strategy"}, "set standby.podLabels to labels outside the selectors of the Service and of the target"},
		"BlueGreen that scales is refused":              {"{strategy: BlueGreen, action: Scale, standby: {podLabels: {app: standby}}}", []string{"spec.strategy"}, "set action to Reconcile or Rollback"},
		"a standby without BlueGreen is refused":        {"standby: {podLabels: {app: standby}}", []string{"spec.standby"}, "only the strategy BlueGreen makes a standby"},
		"a standby without labels is refused":           {"{strategy: BlueGreen, standby: {}}", []string{"spec.standby.podLabels"}, "Required value"},
		"a standby with no labels is refused":           {"{strategy: BlueGreen, standby: {podLabels: {}}}", []string{"spec.standby.podLabels"}, "should have at least 1 properties"},
		"a standby with a label of an overlong key":     {"{strategy: BlueGreen, standby: {podLabels: {" + strings.Repeat("k", 318) + ": a}}}", []string{"spec.standby.podLabels"}, "a label key has 1 to 317 characters"},
		"a standby with a label of Plumbline":           {"{strategy: BlueGreen, standby: {podLabels: {plumbline.dev/standby: a}}}", []string{"spec.standby.podLabels"}, "labels of plumbline.dev are set by the executor alone"},
		"an unknown action is refused":                  {"action: Delete", []string{"spec.action"}, "Unsupported value"},
		"no action is refused":                          {"action: null", []string{"spec.action"}, "Required value"},
		"an unknown strategy is refused":                {"strategy: rolling", []string{"spec.strategy"}, "Unsupported value"},
		"no trigger is refused":                         {"trigger: null", []string{"spec.trigger"}, "Required value"},
		"an unknown trigger is refused":                 {"trigger: Always", []string{"spec.trigger"}, "Unsupported value"},
		"AgeThreshold with an age is accepted":          {spec: "{trigger: AgeThreshold, minimumDriftAge: 15m}"},
		"AgeThreshold without an age is refused":        {"trigger: AgeThreshold", []string{"spec.minimumDriftAge"}, "trigger AgeThreshold needs minimumDriftAge"},
		"Scheduled with a window is accepted":           {spec: "{trigger: Scheduled, schedule: {maintenanceWindow: {start: '02:00', end: '04:00'}}}"},
		"Scheduled without a schedule is refused":       {"trigger: Scheduled", []string{"spec.schedule.maintenanceWindow"}, "trigger Scheduled needs a maintenance window"},
		"Scheduled in a zone without a time is refused": {"{trigger: Scheduled, schedule: {maintenanceWindow: {timeZone: Europe/Berlin}, allowedDays: [Monday]}}", []string{"spec.schedule.maintenanceWindow"}, "trigger Scheduled needs a maintenance window"},
		"Scheduled on days without a window is refused": {"{trigger: Scheduled, schedule: {allowedDays: [Monday]}}", []string{"spec.schedule.maintenanceWindow"}, "trigger Scheduled needs a maintenance window"},
		"SeverityEscalation is accepted":                {spec: "trigger: SeverityEscalation"},
		"Manual is accepted":                            {spec: "trigger: Manual"},
	}
	for _, action := range []string{"NotifyOnly", "Rollback", "Scale", "Restart", "Quarantine"} {
		cases["action "+action+" is accepted"] = specCase{spec: "action: " + action}
	}
	for _, strategy := range []string{"AllAtOnce", "Staged"} {
		cases["strategy "+strategy+" is accepted"] = specCase{spec: "strategy: " + strategy}
	}
	return cases
}

func safetyCases() map[string]specCase {
	safety := func(s string) string { return "safety: {" + s + "}" }
	cases := map[string]specCase{
		"every limit at its lowest is accepted":       {spec: safety("maxConcurrent: 1, maxPerHour: 1, maxPerDay: 1, cooldown: 0s, maxTargets: 1, maxTargetPercent: 1, minHealthyPercent: 100")},
		"every limit at its highest is accepted":      {spec: safety("maxConcurrent: 100, maxPerHour: 1000, maxPerDay: 1000, cooldown: 24h, maxTargets: 10, maxTargetPercent: 25, minHealthyPercent: 75")},
		"an hour that allows more than its day":       {safety("maxPerHour: 51, maxPerDay: 50"), []string{"spec.safety.maxPerHour"}, "maxPerHour is more than maxPerDay"},
		"an hour above the day that is the default":   {safety("maxPerHour: 51"), []string{"spec.safety.maxPerHour"}, "maxPerHour is more than maxPerDay"},
		"a negative cooldown is refused":              {safety("cooldown: -5m"), []string{"spec.safety.cooldown"}, "a duration such as 5m, from 0s to 24h"},
		"a cooldown of more than a day is refused":    {safety("cooldown: 24h1s"), []string{"spec.safety.cooldown"}, "from 0s to 24h"},
		"a breaker at its lowest is accepted":         {spec: safety("circuitBreaker: {failureThreshold: 1, openDuration: 1m}")},
		"a breaker that opens for nothing is refused": {safety("circuitBreaker: {failureThreshold: 0}"), []string{"spec.safety.circuitBreaker.failureThreshold"}, "should be greater than or equal to 1"},
		"a breaker that never opens is refused":       {safety("circuitBreaker: {failureThreshold: 101}"), []string{"spec.safety.circuitBreaker.failureThreshold"}, "should be less than or equal to 100"},
		"a breaker that closes at once is refused":    {safety("circuitBreaker: {openDuration: 59s}"), []string{"spec.safety.circuitBreaker.openDuration"}, "a duration such as 30m, from 1m to 168h"},
		"a breaker that stays open for weeks":         {safety("circuitBreaker: {openDuration: 169h}"), []string{"spec.safety.circuitBreaker.openDuration"}, "from 1m to 168h"},
		"a breaker open for a negative time":          {safety("circuitBreaker: {openDuration: -30m}"), []string{"spec.safety.circuitBreaker.openDuration"}, "from 1m to 168h"},
	}
	for field, bounds := range map[string][2]int{
		"maxConcurrent": {1, 100}, "maxTargets": {1, 10}, "maxTargetPercent": {1, 25}, "minHealthyPercent": {75, 100},
	} {
		for _, value := range []int{0, -1, bounds[0] - 1} {
			cases[fmt.Sprintf("%s of %d is refused", field, value)] = specCase{safety(fmt.Sprintf("%s: %d", field, value)), []string{"spec.safety." + field}, fmt.Sprintf("should be greater than or equal to %d", bounds[0])}
		}
		for _, value := range []int{bounds[1] + 1, 10000} {
			cases[fmt.Sprintf("%s of %d is refused", field, value)] = specCase{safety(fmt.Sprintf("%s: %d", field, value)), []string{"spec.safety." + field}, fmt.Sprintf("should be less than or equal to %d", bounds[1])}
		}
	}
	for _, value := range []int{0, -1} {
		// Less than any hour, too.
		cases[fmt.Sprintf("maxPerDay of %d is refused", value)] = specCase{safety(fmt.Sprintf("maxPerDay: %d", value)), []string{"spec.safety.maxPerDay", "spec.safety.maxPerHour"}, "should be greater than or equal to 1"}
	}
	for _, value := range []int{1001, 10000} {
		cases[fmt.Sprintf("maxPerDay of %d is refused", value)] = specCase{safety(fmt.Sprintf("maxPerDay: %d", value)), []string{"spec.safety.maxPerDay"}, "should be less than or equal to 1000"}
	}
	cases["maxPerHour of 0 is refused"] = specCase{safety("maxPerHour: 0"), []string{"spec.safety.maxPerHour"}, "should be greater than or equal to 1"}
	cases["maxPerHour of -1 is refused"] = specCase{safety("maxPerHour: -1"), []string{"spec.safety.maxPerHour"}, "should be greater than or equal to 1"}
	cases["maxPerHour of 10000 is refused"] = specCase{safety("maxPerHour: 10000, maxPerDay: 1000"), []string{"spec.safety.maxPerHour"}, "should be less than or equal to 1000"}
	return cases
}

func scheduleCases() map[string]specCase {
	schedule := func(s string) string { return "schedule: {" + s + "}" }
	window := func(s string) string { return schedule("maintenanceWindow: {" + s + "}") }
	const in = "spec.schedule.maintenanceWindow."
	cases := map[string]specCase{
		"a window within a day is accepted":             {spec: window("start: '02:00', end: '04:00', timeZone: Europe/Berlin")},
		"a window over midnight is accepted":            {spec: window("start: '22:00', end: '04:00'")},
		"a window until the last minute is accepted":    {spec: window("start: '00:00', end: '23:59'")},
		"a window that is never open is refused":        {window("start: '02:00', end: '02:00'"), []string{in + "end"}, "a window that begins when it ends is never open"},
		"a window without an end is refused":            {window("start: '02:00'"), []string{in + "start"}, "start and end come together"},
		"a window without a start is refused":           {window("end: '02:00'"), []string{in + "start"}, "start and end come together"},
		"a window that names the zone of days alone":    {spec: schedule("maintenanceWindow: {timeZone: Europe/Berlin}, allowedDays: [Monday]")},
		"a window that names the zone of times alone":   {spec: schedule("maintenanceWindow: {timeZone: Europe/Berlin}, allowedStart: '22:00', allowedEnd: '04:00'")},
		"a window that names a zone of none is refused": {window("timeZone: Europe/Berlin"), []string{in + "start"}, "a window without start and end is only for the time zone"},
		"a window that says nothing is refused":         {window(""), []string{in + "start"}, "a window without start and end is only for the time zone"},
		"hour 24 is refused":                            {window("start: '22:00', end: '24:00'"), []string{in + "end"}, "should match"},
		"minute 60 is refused":                          {window("start: '22:60', end: '23:00'"), []string{in + "start"}, "should match"},
		"a window with seconds is refused":              {window("start: '22:00:00', end: '23:00'"), []string{in + "start"}, "may not be more than 5"},
		"an hour of one digit is refused":               {window("start: '2:00', end: '04:00'"), []string{in + "start"}, "should be at least 5 chars"},
		"a time that YAML reads as a number is refused": {window("start: 1200, end: '13:00'"), []string{in + "start"}, "must be of type string"},
		"days are accepted":                             {spec: schedule("allowedDays: [Monday, Sunday]")},
		"no days are refused":                           {schedule("allowedDays: []"), []string{"spec.schedule.allowedDays"}, "should have at least 1 items"},
		"a day twice is refused":                        {schedule("allowedDays: [Monday, Monday]"), []string{"spec.schedule.allowedDays[1]"}, "Duplicate value"},
		"a day in short is refused":                     {schedule("allowedDays: [Mon]"), []string{"spec.schedule.allowedDays[0]"}, "Unsupported value"},
		"a daily time is accepted":                      {spec: schedule("allowedStart: '08:00', allowedEnd: '18:00'")},
		"a daily time without an end is refused":        {schedule("allowedStart: '08:00'"), []string{"spec.schedule.allowedStart"}, "allowedStart and allowedEnd come together"},
		"a daily time without a start is refused":       {schedule("allowedEnd: '08:00'"), []string{"spec.schedule.allowedStart"}, "allowedStart and allowedEnd come together"},
		"a daily time that is never is refused":         {schedule("allowedStart: '08:00', allowedEnd: '08:00'"), []string{"spec.schedule.allowedEnd"}, "a time that begins when it ends is never open"},
		"a daily time of no clock is refused":           {schedule("allowedStart: '08:00', allowedEnd: '8 pm'"), []string{"spec.schedule.allowedEnd"}, "should be at least 5 chars"},
		"urgent drift at any time is accepted":          {spec: schedule("urgent: Allowed")},
		"urgent as a bool is refused":                   {schedule("urgent: true"), []string{"spec.schedule.urgent"}, "must be of type string"},
	}
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"} {
		cases["zone "+zone+" is accepted"] = specCase{spec: window("start: '02:00', end: '04:00', timeZone: " + zone)}
	}
	// Whether a zone of this form exists is known at run time alone.
	for _, zone := range []string{"CET", "+02:00", "europe/berlin", "Europe/", "../etc/passwd", "Local", "Europe/Berlin/"} {
		cases["zone "+zone+" is refused"] = specCase{window("start: '02:00', end: '04:00', timeZone: '" + zone + "'"), []string{in + "timeZone"}, "should match"}
	}
	return cases
}

func healthCases() map[string]specCase {
	health := func(s string) string { return "health: {" + s + "}" }
	cases := map[string]specCase{
		"health at its lowest is accepted":  {spec: health("delayAfter: 0s, stabilization: 0s, timeout: 5s")},
		"health at its highest is accepted": {spec: health("delayAfter: 24h, stabilization: 1h, timeout: 24h")},
		"a timeout of nothing is refused":   {health("timeout: 0s"), []string{"spec.health.timeout"}, "a duration such as 10m, from 5s to 24h"},
	}
	for field, rule := range map[string]string{
		"delayAfter":    "a duration such as 1m, from 0s to 24h",
		"stabilization": "a duration such as 10s, from 0s to 1h",
		"timeout":       "a duration such as 10m, from 5s to 24h",
	} {
		for _, bad := range []string{"-1s", "24h1s", "1d", "1 m"} {
			cases[field+" of "+bad+" is refused"] = specCase{health(field + ": " + bad), []string{"spec.health." + field}, rule}
		}
	}
	return cases
}

func channelCases() map[string]specCase {
	channel := func(s string) string {
		return "notifications: {channels: [{name: c, destination: {name: s, key: k}, " + s + "}]}"
	}
	const in = "spec.notifications.channels[0]."
	return map[string]specCase{
		"a chat is accepted":                                {spec: channel("type: Slack, channel: '#ops'")},
		"mail is accepted":                                  {spec: channel("type: Email, recipients: [a@example.com]")},
		"a signed webhook is accepted":                      {spec: channel("type: Webhook, signingKey: {name: s, key: signing}")},
		"CloudEvents are accepted":                          {spec: channel("type: CloudEvents")},
		"CloudEvents with a token are accepted":             {spec: channel("type: CloudEvents, token: {name: s, key: token}, source: 'urn:plumbline:eu-1'")},
		"a webhook with a token is refused":                 {channel("type: Webhook, signingKey: {name: s, key: signing}, token: {name: s, key: token}"), []string{in + "token"}, "token is for type CloudEvents"},
		"a chat with a source is refused":                   {channel("type: Slack, source: 'urn:a'"), []string{in + "source"}, "source is for type CloudEvents"},
		"a source with a space is refused":                  {channel("type: CloudEvents, source: 'urn: a'"), []string{in + "source"}, "should match"},
		"a source beyond its bound is refused":              {channel("type: CloudEvents, source: 'urn:" + strings.Repeat("x", 253) + "'"), []string{in + "source"}, "may not be more than 256"},
		"mail to nobody is refused":                         {channel("type: Email"), []string{in + "recipients"}, "recipients are for type Email, and needed there"},
		"a chat with recipients is refused":                 {channel("type: Slack, recipients: [a@example.com]"), []string{in + "recipients"}, "recipients are for type Email"},
		"a recipient that is none is refused":               {channel("type: Email, recipients: [ops]"), []string{in + "recipients[0]"}, "should match"},
		"a recipient that adds a header is refused":         {channel(`type: Email, recipients: ["a@example.com\nbcc: b@example.com"]`), []string{in + "recipients[0]"}, "should match"},
		"a webhook without a key is refused":                {channel("type: Webhook"), []string{in + "signingKey"}, "signingKey is for type Webhook, and needed there"},
		"a chat with a key is refused":                      {channel("type: Slack, signingKey: {name: s, key: k}"), []string{in + "signingKey"}, "signingKey is for type Webhook"},
		"mail with a channel is refused":                    {channel("type: Email, recipients: [a@example.com], channel: '#ops'"), []string{in + "channel"}, "channel is for type Slack"},
		"a channel without a type is refused":               {channel("type: null"), []string{in + "type"}, "Required value"},
		"a channel for what is critical is accepted":        {spec: channel("type: Slack, minimumSeverity: Critical")},
		"a minimum severity that is none is refused":        {channel("type: Slack, minimumSeverity: Fatal"), []string{in + "minimumSeverity"}, "Unsupported value"},
		"an unknown type is refused":                        {channel("type: Pager"), []string{in + "type"}, "Unsupported value"},
		"a Secret of another namespace cannot be named":     {"notifications: {channels: [{name: c, type: Slack, destination: {name: other/s, key: k}}]}", []string{in + "destination.name"}, "should match"},
		"a channel without a destination is refused":        {"notifications: {channels: [{name: c, type: Slack}]}", []string{in + "destination"}, "Required value"},
		"two channels of one name are refused":              {"notifications: {channels: [{name: c, type: Slack, destination: {name: s, key: k}}, {name: c, type: CloudEvents, destination: {name: s, key: k}}]}", []string{"spec.notifications.channels[1]"}, "Duplicate value"},
		"more channels than anybody reads are refused":      {"notifications: {channels: [" + repeat(9, "{name: c%d, type: Slack, destination: {name: s, key: k}}") + "]}", []string{"spec.notifications.channels"}, "must have at most 8 items"},
		"a new plan is told if it waits":                    {spec: "notifications: {onPlanCreated: IfWaiting}"},
		"a new plan told by another word is refused":        {"notifications: {onPlanCreated: Sometimes}", []string{"spec.notifications.onPlanCreated"}, `supported values: "Enabled", "IfWaiting", "Disabled"`},
		"a toggle is switched":                              {spec: "notifications: {onPlanCreated: Enabled, onFailed: Disabled}"},
		"a toggle as a bool is refused":                     {"notifications: {onStarted: true}", []string{"spec.notifications.onStarted"}, "must be of type string"},
		"a toggle in the seed's spelling is no known value": {"notifications: {onStarted: 'yes'}", []string{"spec.notifications.onStarted"}, "Unsupported value"},
	}
}

func exceptionCases() map[string]specCase {
	cases := map[string]specCase{}
	for _, field := range []string{"unattributed", "gitOps", "activeWriter", "recreate"} {
		cases["exception "+field+" is accepted"] = specCase{spec: "exceptions: {" + field + ": Allowed}"}
		cases["exception "+field+" that is neither is refused"] = specCase{"exceptions: {" + field + ": Maybe}", []string{"spec.exceptions." + field}, `supported values: "Allowed", "Forbidden"`}
	}
	return cases
}

// Rules about a change.
const (
	environmentIsImmutable = "environmentName is immutable, because its ledger counts the writes of this policy"
	accountComesFirst      = "serviceAccountName is set when the policy is created"
)

func TestRemediationPolicy_Transitions(t *testing.T) {
	create(t, object(t, "RemediationPolicy", "transitions", smallestPolicy))
	runPatchCases(t, "RemediationPolicy", "transitions", dryPatch, map[string]patchCase{
		"the mode may change":                 {patch: `{"spec":{"mode":"Active","requestedBy":"alice"}}`},
		"a service account that comes later":  {`{"spec":{"mode":"Active","serviceAccountName":"shop/repairs"}}`, []string{"spec.serviceAccountName"}, accountComesFirst},
		"the limits may change":               {patch: `{"spec":{"safety":{"maxPerHour":1}}}`},
		"another environment is refused":      {`{"spec":{"environmentName":"staging"}}`, []string{"spec.environmentName"}, environmentIsImmutable},
		"removing the environment is refused": {`{"spec":{"environmentName":null}}`, []string{"spec.environmentName"}, "Required value"},
		"removing the spec is refused":        {`{"spec":null}`, []string{"spec"}, "Required value"},
	})
	create(t, object(t, "RemediationPolicy", "from-git-transitions", strings.Replace(smallestPolicy, "{", "{serviceAccountName: shop/repairs, ", 1)))
	runPatchCases(t, "RemediationPolicy", "from-git-transitions", dryPatch, map[string]patchCase{
		"a policy of a service account may act": {patch: `{"spec":{"mode":"Active"}}`},
		"another service account":               {patch: `{"spec":{"serviceAccountName":"shop/other"}}`},
		"a user takes its place":                {patch: `{"spec":{"serviceAccountName":null,"requestedBy":"alice"}}`},
	})
}
