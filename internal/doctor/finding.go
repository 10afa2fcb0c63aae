// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Severity of a finding.
type Severity string

// The severities, worst first. Unknown stands between: it is no fault that was
// seen, and no proof that there is none.
const (
	// Critical: Plumbline does not do its work, or the cluster can lock itself up.
	Critical Severity = "Critical"
	// Warning: it works, and something makes it weaker or will break it.
	Warning Severity = "Warning"
	// Unknown: it could not be read.
	Unknown Severity = "Unknown"
	// Info: worth knowing; nothing has to be done.
	Info Severity = "Info"
	// OK: looked at and found good.
	OK Severity = "OK"
)

// Severities are all of them, worst first.
func Severities() []Severity { return []Severity{Critical, Warning, Unknown, Info, OK} }

func (s Severity) rank() int { return slices.Index(Severities(), s) }

// Finding is one answer of one check.
type Finding struct {
	// ID of the check, such as webhook.bundle.
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	// Object is what the finding is about, as Kind/name or Kind/namespace/name.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
	// Fix says what to do; it may have several lines, YAML included.
	Fix string `json:"fix,omitempty"`
	// Permission is the missing permission of the user, such as "list secrets", if the check is Unknown for that reason.
	Permission string `json:"permission,omitempty"`
	// Docs is the URL of the section that explains the check.
	Docs string `json:"docs,omitempty"`
}

// Summary counts findings by severity.
type Summary struct {
	Critical int `json:"critical"`
	Warning  int `json:"warning"`
	Unknown  int `json:"unknown"`
	Info     int `json:"info"`
	OK       int `json:"ok"`
}

// Report is the answer of all checks.
type Report struct {
	// Namespace that Plumbline is installed in, empty when it was not found.
	Namespace     string    `json:"namespace"`
	ServerVersion string    `json:"serverVersion,omitempty"`
	User          string    `json:"user,omitempty"`
	CheckedAt     time.Time `json:"checkedAt"`
	// Skipped are the checks that the caller left out.
	Skipped  []string  `json:"skipped,omitempty"`
	Summary  Summary   `json:"summary"`
	Findings []Finding `json:"findings"`
}

// usualNamespace is the one that the documentation installs into.
const usualNamespace = "plumbline-system"

// maxPerCheck bounds the findings of one check and severity; the rest is counted.
const maxPerCheck = 20

// Examine runs all checks but those named in skip. Findings come worst first,
// then in the order of the checks, then by object; those of one check and one
// severity beyond twenty are counted in one finding more.
func Examine(s *Snapshot, skip ...string) Report {
	r := Report{
		Namespace: s.Namespace, ServerVersion: s.Server.Value.GitVersion, User: s.User.Value.Name, CheckedAt: s.Now,
		Skipped: skip, Findings: []Finding{},
	}
	upgrade := s.upgrade()
	for _, check := range Checks() {
		if slices.Contains(skip, check.ID) {
			continue
		}
		found := check.run(s)
		if len(found) == 0 {
			found = []Finding{{Severity: OK, Message: check.Good}}
		}
		for i := range found {
			found[i].ID, found[i].Docs = check.ID, check.Docs(s.ClientVersion)
			found[i].Fix = strings.ReplaceAll(found[i].Fix, upgradeCommand, upgrade)
			if s.Namespace != "" { // commands are written for the usual namespace
				found[i].Fix = strings.ReplaceAll(found[i].Fix, usualNamespace, s.Namespace)
			}
		}
		slices.SortStableFunc(found, func(a, b Finding) int {
			return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(a.Object, b.Object))
		})
		r.Findings = append(r.Findings, bounded(slices.Compact(found))...)
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	r.count()
	return r
}

// bounded cuts each run of one severity; found is sorted by severity.
func bounded(found []Finding) []Finding {
	var out []Finding
	seen := map[Severity]int{}
	for _, f := range found {
		if seen[f.Severity]++; seen[f.Severity] <= maxPerCheck {
			out = append(out, f)
		}
	}
	for _, severity := range Severities() {
		if more := seen[severity] - maxPerCheck; more > 0 {
			last := found[len(found)-1]
			out = append(out, Finding{ID: last.ID, Docs: last.Docs, Severity: severity, Message: fmt.Sprintf("and %d more of this check", more)})
		}
	}
	return out
}

func (r *Report) count() {
	for _, f := range r.Findings {
		switch f.Severity {
		case Critical:
			r.Summary.Critical++
		case Warning:
			r.Summary.Warning++
		case Info:
			r.Summary.Info++
		case OK:
			r.Summary.OK++
		case Unknown:
			r.Summary.Unknown++
		default: // no check makes one; it must not pass as good
			r.Summary.Unknown++
		}
	}
}

// Decision is what a report means to a caller who fails on a severity.
type Decision string

// The decisions.
const (
	// Passed: nothing was found at or above the severity, and nothing that could be was left unread.
	Passed Decision = "Passed"
	// Failed: something was found.
	Failed Decision = "Failed"
	// Undecided: nothing was found, and some check that could have found something was not answered.
	Undecided Decision = "Undecided"
)

// Decide says what the report means to somebody who fails on failOn, which is
// Critical or Warning; any other value is taken as Warning, the stricter one.
func (r *Report) Decide(failOn Severity) Decision {
	if failOn != Critical {
		failOn = Warning
	}
	if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity.rank() <= failOn.rank() }) {
		return Failed
	}
	if len(r.Unanswered(failOn)) > 0 {
		return Undecided
	}
	return Passed
}

// Unanswered are the checks with an Unknown finding that can find something at
// or above failOn.
func (r *Report) Unanswered(failOn Severity) []string {
	worst := map[string]Severity{}
	for _, check := range Checks() {
		worst[check.ID] = check.Worst
	}
	var ids []string
	for _, f := range r.Findings {
		if f.Severity == Unknown && worst[f.ID].rank() <= failOn.rank() && !slices.Contains(ids, f.ID) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// maxNamed bounds the names that one message lists.
const maxNamed = 10

// named joins names, the first ten, and counts the others.
func named(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
