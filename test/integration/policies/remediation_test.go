// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var (
	ann     = who{"ann", []string{"authors", "team-a", "team-b"}}
	ben     = who{"ben", []string{"authors", "team-b"}}
	olga    = who{"olga", []string{"operators"}}
	hal     = who{"hal", []string{"halters"}}
	execute = who{executor, nil}
	// Names that only look like those that the policies know.
	namesake = who{"system:serviceaccount:shop:plumbline-executor", []string{"roots"}}
	almost   = who{"system:serviceaccount:plumbline-system:plumbline-executor2", []string{"roots"}}
	judgelet = who{"plumbline-assessor", []string{"roots"}}
)

// assertAnswer demands that a request is accepted, or refused as forbidden with
// these words.
func assertAnswer(t *testing.T, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("refused: %v", err)
	case refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refused)):
		t.Errorf("error = %v, want Forbidden with %q", err, refused)
	}
}

func merged(t *testing.T, by who, o client.Object, patch string) error {
	t.Helper()
	return mustBe(t, by.user, by.groups...).Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func mergedStatus(t *testing.T, by who, o client.Object, patch string) error {
	t.Helper()
	return mustBe(t, by.user, by.groups...).Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func mustCreate(t *testing.T, by who, o client.Object) {
	t.Helper()
	if err := mustBe(t, by.user, by.groups...).Create(t.Context(), o); err != nil {
		t.Fatalf("creating as %s: %v", by.user, err)
	}
}

// policyOf is a policy as its author wrote it.
func policyOf(mode v1alpha1.PolicyMode, author string, groups ...string) func(*v1alpha1.RemediationPolicy) {
	return func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Mode, p.Spec.RequestedBy, p.Spec.RequestedByGroups = mode, author, groups
	}
}

func TestWhoMayCreateAPolicy(t *testing.T) {
	const (
		inOnesName = "spec.requestedBy must be the authenticated user: set it to "
		ownGroups  = "spec.requestedByGroups must be groups of the authenticated user, "
	)
	tests := map[string]struct {
		who     who
		policy  func(*v1alpha1.RemediationPolicy)
		refused string
	}{
		"one that only watches needs no name":           {ann, policyOf("ObserveOnly", ""), ""},
		"one that only watches in her name":             {ann, policyOf("ObserveOnly", "ann"), ""},
		"one that only watches in another's name":       {ann, policyOf("ObserveOnly", "ben"), inOnesName + "ann"},
		"an active one in her name":                     {ann, policyOf("Active", "ann"), ""},
		"an active one in another's name":               {ann, policyOf("Active", "ben"), inOnesName + "ann"},
		"a name that differs by its case":               {ann, policyOf("Active", "Ann"), inOnesName},
		"a name with a space behind it":                 {ann, policyOf("Active", "ann "), inOnesName},
		"the name of a group of hers":                   {ann, policyOf("Active", "authors"), inOnesName},
		"a halted one in another's name":                {ann, policyOf("Halted", "ben"), inOnesName},
		"an administrator in another's name":            {root, policyOf("Active", "ann"), inOnesName + "root"},
		"a member of system:masters in another's name":  {master, policyOf("Active", "ann"), inOnesName + "master"},
		"in the name of the executor":                   {root, policyOf("Active", executor), inOnesName},
		"a service account in its own name":             {who{"system:serviceaccount:flux:apply", []string{"authors"}}, policyOf("Active", "system:serviceaccount:flux:apply"), ""},
		"a service account by its short name":           {who{"system:serviceaccount:flux:apply", []string{"authors"}}, policyOf("Active", "apply"), inOnesName},
		"somebody unknown in his name":                  {who{"system:anonymous", []string{"authors"}}, policyOf("Active", "ann"), inOnesName + "system:anonymous"},
		"with groups of hers":                           {ann, policyOf("Active", "ann", "team-a", "team-b"), ""},
		"with a group that is not hers":                 {ann, policyOf("Active", "ann", "team-a", "platform"), ownGroups + "ann"},
		"with the group of administrators":              {ann, policyOf("Active", "ann", "system:masters"), ownGroups},
		"groups without a name are no way around":       {ann, policyOf("ObserveOnly", "", "platform"), ownGroups},
		"an author of no policies at all":               {alice, policyOf("ObserveOnly", ""), `cannot create resource "remediationpolicies"`},
		"a thousand groups, of which one is hers alone": {who{"ann", append(manyGroups(1000), "authors", "team-a")}, policyOf("Active", "ann", "team-a"), ""},
	}
	number := 0
	for name, test := range tests {
		number++
		p := remediationPolicy(fmt.Sprintf("created-%d", number))
		test.policy(p)
		t.Run(name, func(t *testing.T) {
			assertAnswer(t, mustBe(t, test.who.user, test.who.groups...).Create(t.Context(), p), test.refused)
		})
	}
}

func TestWhoMayChangeAPolicy(t *testing.T) {
	const (
		inOnesName = "spec.requestedBy must be the authenticated user: set it to "
		takesOver  = "an active policy acts with the permissions of its last writer, and spec.requestedBy names another user: set spec.requestedBy to "
		ownGroups  = "spec.requestedByGroups must be groups of the authenticated user, "
		onlyStatus = "only the assessor writes the status of a RemediationPolicy"
		severer    = `{"spec":{"minimumSeverity":"Low"}}`
	)
	active, watching := policyOf("Active", "ann", "team-a"), policyOf("ObserveOnly", "ann", "team-a")
	tests := map[string]struct {
		stored  func(*v1alpha1.RemediationPolicy) // by ann
		who     who
		patch   string
		refused string
	}{
		"its author changes an active one":                   {active, ann, severer, ""},
		"somebody else changes an active one":                {active, ben, severer, takesOver + "ben"},
		"an administrator changes an active one":             {active, root, severer, takesOver + "root"},
		"the assessor cannot change one":                     {active, judge, severer, "cannot patch resource"},
		"somebody takes an active one over":                  {active, ben, `{"spec":{"minimumSeverity":"Low","requestedBy":"ben","requestedByGroups":["team-b"]}}`, ""},
		"somebody takes it over and keeps her groups":        {active, ben, `{"spec":{"requestedBy":"ben"}}`, ownGroups + "ben"},
		"somebody takes it over in a third one's name":       {active, ben, `{"spec":{"requestedBy":"olga"}}`, inOnesName + "ben"},
		"somebody halts an active one":                       {active, ben, `{"spec":{"mode":"Halted"}}`, ""},
		"somebody makes it watch only":                       {active, ben, `{"spec":{"mode":"ObserveOnly"}}`, ""},
		"somebody halts it and adds a group":                 {active, ben, `{"spec":{"mode":"Halted","requestedByGroups":["team-a","platform"]}}`, ownGroups},
		"somebody activates hers":                            {watching, ben, `{"spec":{"mode":"Active"}}`, takesOver + "ben"},
		"somebody activates hers in his name":                {watching, ben, `{"spec":{"mode":"Active","requestedBy":"ben","requestedByGroups":null}}`, ""},
		"its author activates it":                            {watching, ann, `{"spec":{"mode":"Active"}}`, ""},
		"its author activates it, having left a group":       {watching, who{"ann", []string{"authors"}}, `{"spec":{"mode":"Active"}}`, ownGroups + "ann"},
		"its author changes it, having left a group":         {active, who{"ann", []string{"authors"}}, severer, ownGroups + "ann"},
		"somebody changes one that only watches":             {watching, ben, severer, ""},
		"somebody puts a third one's name on it":             {watching, ben, `{"spec":{"requestedBy":"olga"}}`, inOnesName + "ben"},
		"somebody puts the author back on his own":           {policyOf("ObserveOnly", "ann"), ben, `{"spec":{"requestedBy":"ben"}}`, ""},
		"somebody takes the name off one that only watches":  {policyOf("ObserveOnly", "ann"), ben, `{"spec":{"requestedBy":null}}`, ""},
		"somebody takes the name off and leaves the groups":  {watching, ben, `{"spec":{"requestedBy":null}}`, ownGroups},
		"somebody adds her group to one that only watches":   {policyOf("ObserveOnly", "ann"), ben, `{"spec":{"requestedByGroups":["team-a"]}}`, ownGroups + "ben"},
		"a label on an active one":                           {active, ben, `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"a write that changes nothing, as a migration makes": {active, root, `{}`, ""},
		"the status through the object itself is not stored": {active, ben, `{"status":{"waitingFor":"nothing"}}`, ""},
	}
	number := 0
	for name, test := range tests {
		number++
		p := remediationPolicy(fmt.Sprintf("changed-%d", number))
		test.stored(p)
		t.Run(name, func(t *testing.T) {
			mustCreate(t, ann, p)
			assertAnswer(t, merged(t, test.who, p, test.patch), test.refused)
		})
	}
	p := remediationPolicy("status-of-a-policy")
	active(p)
	mustCreate(t, ann, p)
	for name, test := range map[string]struct {
		who     who
		refused string
	}{
		"the assessor writes the status":       {judge, ""},
		"the executor may not":                 {execute, `cannot patch resource "remediationpolicies/status"`},
		"nor its author":                       {ann, `cannot patch resource "remediationpolicies/status"`},
		"nor an administrator":                 {root, onlyStatus},
		"nor somebody who only is called that": {judgelet, onlyStatus},
	} {
		t.Run(name, func(t *testing.T) {
			assertAnswer(t, mergedStatus(t, test.who, p.DeepCopy(), `{"status":{"digest":"sha256:aa"}}`), test.refused)
		})
	}
}

func TestWhoMayHaltAndGrantInALedger(t *testing.T) {
	const (
		onlyCreates = "only the executor creates RemediationLedgers"
		onlyStatus  = "only the executor writes the status of a RemediationLedger"
		noWord      = "spec.halt and spec.override are a person's word"
		haltName    = "spec.halt.requestedBy must be the authenticated user: set it to "
		grantName   = "spec.override.requestedBy must be the authenticated user: set it to "
		onlyMeta    = "only the executor changes owners, finalizers and labels of a RemediationLedger"
		sequence    = `{"status":{"sequence":2}}`
	)
	patch := func(body string) func(*testing.T, who, *v1alpha1.RemediationLedger) error {
		return func(t *testing.T, by who, l *v1alpha1.RemediationLedger) error { return merged(t, by, l, body) }
	}
	status := func(t *testing.T, by who, l *v1alpha1.RemediationLedger) error {
		return mergedStatus(t, by, l, sequence)
	}
	create := func(fill func(*v1alpha1.RemediationLedgerSpec)) func(*testing.T, who, *v1alpha1.RemediationLedger) error {
		return func(t *testing.T, by who, l *v1alpha1.RemediationLedger) error {
			more := remediationLedger(l.Name + "-more")
			fill(&more.Spec)
			return mustBe(t, by.user, by.groups...).Create(t.Context(), more)
		}
	}
	plain := func(*v1alpha1.RemediationLedgerSpec) {}
	remove := func(t *testing.T, by who, l *v1alpha1.RemediationLedger) error {
		return mustBe(t, by.user, by.groups...).Delete(t.Context(), l)
	}
	set := func(field, by string) func(*testing.T, who, *v1alpha1.RemediationLedger) error {
		return patch(fmt.Sprintf(`{"spec":{%q:{"requestedBy":%q,"reason":"r"}}}`, field, by))
	}
	tests := map[string]struct {
		halted  bool // by olaf, who may do everything
		who     who
		act     func(*testing.T, who, *v1alpha1.RemediationLedger) error
		refused string
	}{
		"the executor creates one":             {false, execute, create(plain), ""},
		"the executor writes what was granted": {false, execute, status, ""},
		"the executor adds a label": {false, execute, func(t *testing.T, by who, l *v1alpha1.RemediationLedger) error {
			l.Labels = map[string]string{"a": "b"}
			return mustBe(t, by.user).Update(t.Context(), l)
		}, ""},
		"the executor creates one that may grant": {false, execute, create(func(s *v1alpha1.RemediationLedgerSpec) {
			s.Override = &v1alpha1.LedgerOverride{RequestedBy: executor, Reason: "r"}
		}), noWord},
		"the executor creates a halted one": {false, execute, create(func(s *v1alpha1.RemediationLedgerSpec) {
			s.Halt = &v1alpha1.LedgerHalt{RequestedBy: executor, Reason: "r"}
		}), noWord},
		"the executor lifts a halt": {true, execute, func(t *testing.T, by who, l *v1alpha1.RemediationLedger) error {
			l.Spec.Halt = nil
			return mustBe(t, by.user).Update(t.Context(), l)
		}, noWord},
		"the executor may not delete one":               {false, execute, remove, `cannot delete resource "remediationledgers"`},
		"the assessor may not write what was granted":   {false, judge, status, `cannot patch resource "remediationledgers/status"`},
		"an administrator creates one":                  {false, root, create(plain), onlyCreates},
		"an administrator writes what was granted":      {false, root, status, onlyStatus},
		"a member of system:masters writes it":          {false, master, status, onlyStatus},
		"an executor of another namespace writes it":    {false, namesake, status, onlyStatus},
		"an account whose name begins alike writes it":  {false, almost, status, onlyStatus},
		"an account whose name begins alike creates":    {false, almost, create(plain), onlyCreates},
		"hal halts in his name":                         {false, hal, set("halt", "hal"), ""},
		"hal halts in another's name":                   {false, hal, set("halt", "olga"), haltName + "hal"},
		"an administrator halts in another's name":      {false, root, set("halt", "hal"), haltName + "root"},
		"hal changes the reason of olaf's halt":         {true, hal, patch(`{"spec":{"halt":{"reason":"another"}}}`), haltName + "hal"},
		"hal makes olaf's halt his own":                 {true, hal, set("halt", "hal"), ""},
		"hal lifts olaf's halt":                         {true, hal, patch(`{"spec":{"halt":null}}`), ""},
		"hal lets a new ledger grant":                   {false, hal, set("override", "hal"), ""},
		"hal lets it grant in another's name":           {false, hal, set("override", "olga"), grantName + "hal"},
		"in the name of the executor":                   {false, root, set("override", executor), grantName + "root"},
		"hal annotates beside olaf's halt":              {true, hal, patch(`{"metadata":{"annotations":{"note":"x"}}}`), ""},
		"hal adds a label":                              {false, hal, patch(`{"metadata":{"labels":{"a":"b"}}}`), onlyMeta},
		"an administrator gives it an owner":            {false, root, patch(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"gone"}]}}`), onlyMeta},
		"an administrator adds a finalizer":             {false, root, patch(`{"metadata":{"finalizers":["example.com/stay"]}}`), onlyMeta},
		"the garbage collector removes an owner":        {false, gc, patch(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"there"}]}}`), ""},
		"an administrator deletes one, which shows":     {false, root, remove, ""},
		"somebody who may only see plans halts nothing": {false, olga, set("halt", "olga"), `cannot patch resource "remediationledgers"`},
		"a write that changes nothing":                  {true, root, patch(`{}`), ""},
	}
	olaf := who{"olaf", []string{"roots"}}
	number := 0
	for name, test := range tests {
		number++
		l := remediationLedger(fmt.Sprintf("ledger-%d", number))
		t.Run(name, func(t *testing.T) {
			mustCreate(t, execute, l)
			if test.halted {
				if err := set("halt", "olaf")(t, olaf, l); err != nil {
					t.Fatal(err)
				}
			}
			assertAnswer(t, test.act(t, test.who, l), test.refused)
		})
	}
}

// The executor and the assessor write the same statuses, each its own part.
func TestWhoMayWriteTheMarksOfTheExecutor(t *testing.T) {
	const (
		onlyClaim  = "only the executor writes status.planName"
		onlyLedger = "only the executor writes status.ledgerUID"
		claimAlone = "the executor writes status.planName, status.quarantine, status.fences and no other field of this status"
		begins     = "a quarantine begins while the object is drifted and a plan has claimed it, and only its end changes it"
		onlyBegins = "only the executor begins a quarantine"
		quarantine = `"quarantine":{"startTime":"2026-01-01T00:00:00Z","by":"RemediationPlan/plan-1","token":"uid-0"}`
		claimed    = `"planName":"plan-1"`
		alone      = "the executor writes status.ledgerUID and no other field of this status"
		onlyStatus = "only the assessor writes the status of a Baseline"
		// Two policies refuse it, and the API server tells of one.
		either = "denied request: only the "
	)
	tests := map[string]struct {
		environment bool
		stored      string // by the assessor
		mark        string // by the executor
		who         who
		patch       string
		refused     string
	}{
		"the executor claims":                        {false, `"state":"Drifted"`, ``, execute, `"planName":"plan-1"`, ""},
		"the executor claims what nobody looked at":  {false, ``, ``, execute, `"planName":"plan-1"`, ""},
		"the executor lets go":                       {false, `"state":"Drifted"`, `"planName":"plan-1"`, execute, `"planName":null`, ""},
		"the executor claims for another plan":       {false, `"state":"Drifted"`, `"planName":"plan-1"`, execute, `"planName":"plan-2"`, ""},
		"the executor claims and says it is in sync": {false, `"state":"Drifted"`, ``, execute, `"planName":"plan-1","state":"InSync"`, claimAlone},
		"the executor removes the state":             {false, `"state":"Drifted"`, ``, execute, `"planName":"plan-1","state":null`, claimAlone},
		"the executor adds findings":                 {false, `"state":"Drifted"`, ``, execute, `"findings":[{"path":"","operation":"Added","type":"Unexpected","class":"ObjectUnexpected","firstSeenTime":"2026-01-01T00:00:00Z","actor":{"class":"Untrusted","source":"None"}}]`, claimAlone},
		"the executor says when it was ready":        {false, `"state":"Drifted"`, ``, execute, `"lastCheckTime":"2026-01-01T00:00:00Z"`, claimAlone},
		"the assessor claims":                        {false, `"state":"Drifted"`, ``, judge, `"planName":"plan-1"`, onlyClaim},
		"the assessor lets go":                       {false, `"state":"Drifted"`, `"planName":"plan-1"`, judge, `"planName":null`, onlyClaim},
		"the assessor writes beside a claim":         {false, `"state":"Drifted"`, `"planName":"plan-1"`, judge, `"state":"InSync"`, ""},
		"the executor begins a quarantine":           {false, `"state":"Drifted"`, claimed, execute, quarantine, ""},
		"the executor claims and begins one":         {false, `"state":"Drifted"`, ``, execute, claimed + `,` + quarantine, ""},
		"the executor begins one without a claim":    {false, `"state":"Drifted"`, ``, execute, quarantine, begins},
		"the executor begins one of what is in sync": {false, `"state":"InSync"`, claimed, execute, quarantine, begins},
		"the executor changes a quarantine":          {false, `"state":"Drifted"`, claimed + `,` + quarantine, execute, `"quarantine":{"token":"uid-1"}`, begins},
		"the executor ends a quarantine":             {false, `"state":"Drifted"`, claimed + `,` + quarantine, execute, `"quarantine":null`, claimAlone},
		"the executor lets go beside a quarantine":   {false, `"state":"Drifted"`, claimed + `,` + quarantine, execute, `"planName":null`, ""},
		"the executor fences":                        {false, `"state":"Drifted"`, claimed, execute, `"fences":1`, ""},
		"the assessor begins a quarantine":           {false, `"state":"Drifted"`, claimed, judge, quarantine, onlyBegins},
		"the assessor ends a quarantine":             {false, `"state":"Drifted"`, claimed + `,` + quarantine, judge, `"quarantine":null`, ""},
		"the assessor writes beside a quarantine":    {false, `"state":"Drifted"`, claimed + `,` + quarantine, judge, `"state":"Unknown"`, ""},
		"an administrator lets go":                   {false, `"state":"Drifted"`, `"planName":"plan-1"`, root, `"planName":null`, either},
		"an executor of another namespace claims":    {false, `"state":"Drifted"`, ``, namesake, `"planName":"plan-1"`, either},
		"a namesake of the assessor writes":          {false, `"state":"Drifted"`, ``, judgelet, `"state":"InSync"`, onlyStatus},
		"the executor names the ledger":              {true, `"namespaces":2`, ``, execute, `"ledgerUID":"uid-1"`, ""},
		"the executor names another ledger":          {true, `"namespaces":2`, `"ledgerUID":"uid-1"`, execute, `"ledgerUID":"uid-2"`, ""},
		"the executor counts namespaces":             {true, `"namespaces":2`, ``, execute, `"namespaces":3,"ledgerUID":"uid-1"`, alone},
		"the executor adds a condition":              {true, `"namespaces":2`, ``, execute, `"conditions":[{"type":"Ready","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]`, alone},
		"the assessor names a ledger":                {true, `"namespaces":2`, ``, judge, `"ledgerUID":"uid-1"`, onlyLedger},
		"the assessor forgets the ledger":            {true, `"namespaces":2`, `"ledgerUID":"uid-1"`, judge, `"ledgerUID":null`, onlyLedger},
		"the assessor counts beside a ledger":        {true, `"namespaces":2`, `"ledgerUID":"uid-1"`, judge, `"namespaces":3`, ""},
		"an administrator forgets the ledger":        {true, `"namespaces":2`, `"ledgerUID":"uid-1"`, root, `"ledgerUID":null`, onlyLedger},
		"an administrator forgets all of the status": {true, `"namespaces":2`, `"ledgerUID":"uid-1"`, root, ``, onlyLedger},
		"somebody alike names a ledger":              {true, `"namespaces":2`, ``, almost, `"ledgerUID":"uid-1"`, onlyLedger},
	}
	number := 0
	for name, test := range tests {
		number++
		object, creator := client.Object(baseline(fmt.Sprintf("marked-%d", number))), judge
		if test.environment {
			object, creator = environment(fmt.Sprintf("marked-%d", number)), root
		}
		t.Run(name, func(t *testing.T) {
			mustCreate(t, creator, object)
			if err := mergedStatus(t, judge, object, `{"status":{`+test.stored+`}}`); err != nil {
				t.Fatalf("storing as the assessor: %v", err)
			}
			if test.mark != "" {
				if err := mergedStatus(t, execute, object, `{"status":{`+test.mark+`}}`); err != nil {
					t.Fatalf("marking as the executor: %v", err)
				}
			}
			patch := `{"status":{` + test.patch + `}}`
			if test.patch == "" {
				patch = `{"status":null}`
			}
			assertAnswer(t, mergedStatus(t, test.who, object, patch), test.refused)
		})
	}
}
