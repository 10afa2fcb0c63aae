// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

func TestValidate_NamesTheField(t *testing.T) {
	type change func(*evidence.Record)
	cases := map[string]struct {
		change change
		field  string // empty: nothing is wrong
	}{
		"a good step": {func(*evidence.Record) {}, ""},
		"a fence":     {func(r *evidence.Record) { r.Kind, r.Intent = evidence.KindFence, nil }, ""},
		"a skipped step, which wrote nothing": {func(r *evidence.Record) {
			r.Intent, r.Result = nil, evidence.Result{State: "Skipped", Reason: "TargetMoved"}
		}, ""},
		"an unknown kind":                      {func(r *evidence.Record) { r.Kind = "Leap" }, "kind"},
		"a step without its plan":              {func(r *evidence.Record) { r.Plan = nil }, "kind"},
		"a step without its number":            {func(r *evidence.Record) { r.Step = nil }, "kind"},
		"a step before the first":              {func(r *evidence.Record) { r.Step.Index = -1 }, "step.index"},
		"an action of two words":               {func(r *evidence.Record) { r.Step.Action = "Roll back" }, "step.action"},
		"a step without an end":                {func(r *evidence.Record) { r.Result.State = "" }, "result.state"},
		"a write without an intent":            {func(r *evidence.Record) { r.Intent = nil }, "intent"},
		"an intent without a time":             {func(r *evidence.Record) { r.Intent.At = time.Time{} }, "intent.at"},
		"an unknown origin":                    {func(r *evidence.Record) { r.Result.Origin = "Hearsay" }, "result.origin"},
		"a result that nobody vouches for":     {func(r *evidence.Record) { r.Result.Origin = "" }, "result.origin"},
		"a hash that nobody vouches for":       {func(r *evidence.Record) { r.Result.Origin, r.Result.ResourceVersion = "", "" }, "result.origin"},
		"a version that nobody vouches for":    {func(r *evidence.Record) { r.Result.Origin, r.Result.Hash = "", "" }, "result.origin"},
		"a write that left no version":         {func(r *evidence.Record) { r.Result.ResourceVersion = "" }, "result.resourceVersion"},
		"a write with the hashes of DD-EM-002": {func(r *evidence.Record) { r.Intent.DDEM002Hash, r.Result.DDEM002Hash = digest("1"), digest("2") }, ""},
		"a hash of DD-EM-002 with a prefix":    {func(r *evidence.Record) { r.Intent.DDEM002Hash = pl1("1") }, "intent.ddem002Hash"},
		"one that is no hash":                  {func(r *evidence.Record) { r.Result.DDEM002Hash = "sha256:1" }, "result.ddem002Hash"},
		"one that nobody vouches for": {func(r *evidence.Record) {
			r.Result = evidence.Result{State: "Skipped", DDEM002Hash: digest("1")}
		}, "result.origin"},
		"a write that left no hash":        {func(r *evidence.Record) { r.Result.Hash = "" }, "result.hash"},
		"a reason that is a sentence":      {func(r *evidence.Record) { r.Result.Reason = "password=hunter2" }, "result.reason"},
		"a decision that writes":           {func(r *evidence.Record) { r.Kind = evidence.KindPlanFinished }, "result.origin"},
		"a halt without a reason":          {func(r *evidence.Record) { *r = decision(evidence.KindPlanHalted, 0); r.Result.Reason = "" }, "result.reason"},
		"no time":                          {func(r *evidence.Record) { r.At = time.Time{} }, "at"},
		"no chain":                         {func(r *evidence.Record) { r.Chain.UID = "" }, "policy.uid"},
		"no chain, and no policy":          {func(r *evidence.Record) { r.Chain.UID, r.Policy = "", nil }, "chain.uid"},
		"a chain that is a path":           {func(r *evidence.Record) { r.Chain.UID, r.Policy = "../x", nil }, "chain.uid"},
		"the chain of another policy":      {func(r *evidence.Record) { r.Policy.UID = "other" }, "policy.uid"},
		"a policy without a digest":        {func(r *evidence.Record) { r.Policy.Digest = "" }, "policy.digest"},
		"a plan without a name":            {func(r *evidence.Record) { r.Plan.Name = "" }, "plan.name"},
		"a plan with a name of one letter": {func(r *evidence.Record) { r.Plan.Name = "a" }, ""},
		"a subject without a hash":         {func(r *evidence.Record) { r.Subject.Hash = "" }, "subject.hash"},
		"a hash in capitals":               {func(r *evidence.Record) { r.Subject.Hash = strings.ToUpper(pl1("a")) }, "subject.hash"},
		"a subject without a version":      {func(r *evidence.Record) { r.Subject.APIVersion = "" }, "subject.apiVersion"},
		"a subject without a kind":         {func(r *evidence.Record) { r.Subject.Kind = "" }, "subject.kind"},
		"a subject without a name":         {func(r *evidence.Record) { r.Subject.Name = "" }, "subject.name"},
		"a subject without a namespace":    {func(r *evidence.Record) { r.Subject.Namespace = "" }, ""},
		"a subject of the core group":      {func(r *evidence.Record) { r.Subject.APIVersion = "v1" }, ""},
		"a version of one letter":          {func(r *evidence.Record) { r.Subject.APIVersion = "v" }, ""},
		"a kind with a slash":              {func(r *evidence.Record) { r.Subject.Kind = "a/b" }, "subject.kind"},
		"a namespace with a slash":         {func(r *evidence.Record) { r.Subject.Namespace = "a/b" }, "subject.namespace"},
		"a name with a slash":              {func(r *evidence.Record) { r.Subject.Name = "a/b" }, "subject.name"},
		"a version with two slashes":       {func(r *evidence.Record) { r.Subject.APIVersion = "a/b/c" }, "subject.apiVersion"},
		"a uid with a number sign":         {func(r *evidence.Record) { r.Subject.UID = "a#b" }, "subject.uid"},
		"nobody who began it":              {func(r *evidence.Record) { r.InitiatedBy = "" }, "initiatedBy"},
		"an overlong user":                 {func(r *evidence.Record) { r.Requester = strings.Repeat("u", 257) }, "requester"},
		"a user with a line break":         {func(r *evidence.Record) { r.Approver = "a\nb" }, "approver"},
		"a user who is no text":            {func(r *evidence.Record) { r.Approver = "\xff" }, "approver"},
		"no version of the program":        {func(r *evidence.Record) { r.Builder.Version = "" }, "builder.version"},
		"an image without a digest of it":  {func(r *evidence.Record) { r.Builder.Digest = "latest" }, "builder.digest"},
		"more paths than are shown":        {func(r *evidence.Record) { r.Drift.Total = 0 }, "drift.total"},
		"paths that are too long together": {func(r *evidence.Record) { r.Drift.Paths = []string{strings.Repeat("a", evidence.MaxPathBytes), "b"} }, "drift.paths"},
		"paths of another digest":          {func(r *evidence.Record) { r.Drift.Digest = digest("0") }, "drift.digest"},
		"a withdrawal in another kind":     {func(r *evidence.Record) { r.Withdraws = &evidence.Head{Sequence: 1, Digest: digest("a")} }, "withdraws"},
		"a withdrawal of no record":        {func(r *evidence.Record) { *r = withdrawal(evidence.Head{}); r.Withdraws = nil }, "withdraws"},
		"a withdrawal before the first":    {func(r *evidence.Record) { *r = withdrawal(evidence.Head{Digest: digest("a")}) }, "withdraws.sequence"},
		"a withdrawal without a digest":    {func(r *evidence.Record) { *r = withdrawal(evidence.Head{Sequence: 1}) }, "withdraws.digest"},
		"a withdrawal without a plan": {func(r *evidence.Record) {
			*r = withdrawal(evidence.Head{Sequence: 1, Digest: digest("a")})
			r.Plan = nil
		}, "kind"},
		"a withdrawal":                        {func(r *evidence.Record) { *r = withdrawal(evidence.Head{Sequence: 1, Digest: digest("a")}) }, ""},
		"a successor in another kind":         {func(r *evidence.Record) { r.Succession = succeeded("1", "2") }, "succession"},
		"a successor that is missing":         {func(r *evidence.Record) { *r = succession() }, "succession"},
		"a successor of itself":               {func(r *evidence.Record) { *r = succession(); r.Succession = succeeded("1", "1") }, "succession.successor"},
		"a successor that is no key":          {func(r *evidence.Record) { *r = succession(); r.Succession = succeeded("1", "key") }, "succession.successor"},
		"a predecessor that is no key":        {func(r *evidence.Record) { *r = succession(); r.Succession = succeeded("", "1") }, "succession.predecessor"},
		"a factor of severity made up freely": {func(r *evidence.Record) { r.Severity.Factors[0].Name = "drift type" }, "severity.factors.name"},
		"more factors than a score has": {func(r *evidence.Record) {
			r.Severity.Factors = slices.Repeat([]evidence.Factor{{Name: "DriftAge"}}, 8)
		}, "severity.factors"},
		"as many factors as a score may have": {func(r *evidence.Record) {
			r.Severity.Factors = slices.Repeat([]evidence.Factor{{Name: "DriftAge"}}, 7)
		}, ""},
		"an assessment": {func(r *evidence.Record) { *r = assessment(0) }, ""},
		"an assessment of what was not written": {func(r *evidence.Record) {
			*r = assessment(0)
			r.Assessment.PostHash, r.Assessment.CurrentHash, r.Assessment.Score, r.Assessment.Reason = "", "absent", nil, "no_execution"
		}, ""},
		"an assessment that could not be carried out": {func(r *evidence.Record) { *r = assessment(0); r.Assessment.Reason = "" }, ""},
		"an assessment without its step":              {func(r *evidence.Record) { *r = assessment(0); r.Step = nil }, "kind"},
		"an assessment without its content":           {func(r *evidence.Record) { *r = assessment(0); r.Assessment = nil }, "assessment"},
		"an assessment in another kind":               {func(r *evidence.Record) { r.Assessment = assessment(0).Assessment }, "assessment"},
		"an assessment that writes": {func(r *evidence.Record) {
			*r = assessment(0)
			r.Result = step(0).Result
		}, "result.origin"},
		"an assessment without an end":               {func(r *evidence.Record) { *r = assessment(0); r.Result.State = "" }, "result.state"},
		"an assessment of no name":                   {func(r *evidence.Record) { *r = assessment(0); r.Assessment.Name = "" }, "assessment.name"},
		"an assessment of no uid":                    {func(r *evidence.Record) { *r = assessment(0); r.Assessment.UID = "" }, "assessment.uid"},
		"an assessment without a verdict":            {func(r *evidence.Record) { *r = assessment(0); r.Assessment.Verdict = "" }, "assessment.verdict"},
		"an assessment whose reason is a sentence":   {func(r *evidence.Record) { *r = assessment(0); r.Assessment.Reason = "the pod said hunter2" }, "assessment.reason"},
		"an assessment with a score beyond the best": {func(r *evidence.Record) { *r = assessment(0); r.Assessment.Score = new(int32(10_001)) }, "assessment.score"},
		"an assessment with a hash of no form":       {func(r *evidence.Record) { *r = assessment(0); r.Assessment.CurrentHash = "a" }, "assessment.currentHash"},
		"a component with a message":                 {func(r *evidence.Record) { *r = assessment(0); r.Assessment.Components[0].State = "3 of 3 ready" }, "assessment.components.state"},
		"a component with a score below 0":           {func(r *evidence.Record) { *r = assessment(0); r.Assessment.Components[0].Score = new(int32(-1)) }, "assessment.components.score"},
		"more components than a score has": {func(r *evidence.Record) {
			*r = assessment(0)
			r.Assessment.Components = slices.Repeat(r.Assessment.Components[:1], 6)
		}, "assessment.components"},
		"a path that is no text":             {func(r *evidence.Record) { r.Drift.Paths[0] = "\xff" }, "drift.paths"},
		"a level of severity made up freely": {func(r *evidence.Record) { r.Severity.Level = "very high" }, "severity.level"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := step(0)
			tc.change(&r)
			_, err := evidence.Seal(key(t, 1), placed(r, 1, ""))
			var invalid *evidence.InvalidError
			if tc.field == "" {
				if err != nil {
					t.Fatal(err)
				}
			} else if !errors.As(err, &invalid) || invalid.Field != tc.field {
				t.Errorf("got %v, want the field %s", err, tc.field)
			}
		})
	}
}

func TestSeal_PlaceInTheChain(t *testing.T) {
	for name, r := range map[string]evidence.Record{
		"number 0":                     placed(step(0), 0, ""),
		"the first with one before it": placed(step(0), 1, digest("a")),
		"the second with none":         placed(step(0), 2, ""),
		"a link that is no digest":     placed(step(0), 2, "sha256:x"),
	} {
		if _, err := evidence.Seal(key(t, 1), r); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestSeal_LargestRecord: everything at its bound still fits, and what every
// usual field at its bound takes is told by the test's log.
func TestSeal_LargestRecord(t *testing.T) {
	long := func(n int) string { return strings.Repeat("&", n) }
	uid := strings.Repeat("a", 64)
	word := "A" + strings.Repeat("b", 62)
	path := make([]string, evidence.MaxPathBytes)
	for i := range path {
		path[i] = string(rune('a' + i%26))
	}
	r := placed(step(math.MaxInt32), math.MaxInt64, digest("f"))
	r.Occurrence, r.CorrelationID = math.MaxInt32, long(253)
	r.Subject = evidence.Subject{
		APIVersion: long(253), Kind: long(253), Namespace: long(253), Name: long(253), UID: uid, Hash: pl1("a"),
	}
	r.Drift = &evidence.Drift{Paths: path, Total: math.MaxInt, Digest: digest("a")}
	r.Severity.Factors = slices.Repeat([]evidence.Factor{{Name: word, Score: -1 << 31, Weight: -1 << 31}}, 7)
	r.Chain.UID, r.Policy.UID, r.Plan.UID, r.Intent.UID = uid, uid, uid, uid
	r.Policy.Name, r.Plan.Name, r.Plan.Namespace = long(253), long(253), long(253)
	r.Intent.ResourceVersion, r.Result.ResourceVersion = long(64), long(64)
	r.Step.Action, r.Result.State, r.Result.Reason = word, word, word
	r.Requester, r.Approver, r.InitiatedBy = strings.Repeat(`"`, 256), strings.Repeat(`\`, 256), strings.Repeat("\u2028", 85)
	r.Builder.Version, r.DriftReportID = long(64), long(64)
	r.Step.StartedAt = noon.Add(time.Microsecond)
	r.Bodies = []evidence.Body{{Of: evidence.BodyPolicy, Digest: digest("b")}}
	for _, of := range []evidence.BodyOf{evidence.BodyPlan, evidence.BodyBefore, evidence.BodyAuthorized, evidence.BodyWritten} {
		r.Bodies = append(r.Bodies, evidence.Body{Of: of, Digest: digest("c")})
	}
	t.Run("of an assessment", func(t *testing.T) {
		r := r
		r.Kind, r.Result = evidence.KindAssessment, evidence.Result{State: word, Reason: word, At: r.Result.At}
		r.Assessment = &evidence.Assessment{
			Name: long(253), UID: uid, Reason: strings.ToLower(word), Verdict: word, Score: new(int32(10_000)), Formula: math.MaxInt32, Integrity: word,
			Components: slices.Repeat([]evidence.AssessedComponent{{Name: word, State: word, Effect: word, Score: new(int32(10_000))}}, 5),
			PreHash:    pl1("a"), PostHash: pl1("a"), CurrentHash: pl1("a"), WrittenAt: r.Step.StartedAt,
		}
		if _, err := evidence.Seal(key(t, 1), r); err != nil {
			t.Error(err)
		}
	})
	s, err := evidence.Seal(key(t, 1), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the largest record has %d bytes, its envelope %d", len(s.Payload), len(s.Envelope))
	// The reference page promises less than 16 KiB for a record.
	if evidence.MaxPayload != 16<<10 || evidence.MaxEnvelope != 32<<10 {
		t.Errorf("the bounds are %d and %d bytes, want 16 KiB and 32 KiB", evidence.MaxPayload, evidence.MaxEnvelope)
	}
	if len(s.Payload) > evidence.MaxPayload || len(s.Envelope) > evidence.MaxEnvelope {
		t.Errorf("%d and %d bytes", len(s.Payload), len(s.Envelope))
	}
	if _, err := evidence.Open(keyring(t, key(t, 1)), s.Envelope); err != nil {
		t.Error(err)
	}
}

func TestNewDrift_ShowsWhatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOfN(rapid.StringN(0, 200, 400), 0, 60).Draw(t, "paths")
		d := evidence.NewDrift(paths)
		unique := map[string]bool{}
		for _, p := range paths {
			unique[p] = true
		}
		size := 0
		for i, p := range d.Paths {
			size += len(p)
			if !unique[p] || i > 0 && d.Paths[i-1] >= p {
				t.Fatalf("path %d, %q, is out of order or made up", i, p)
			}
		}
		if d.Total != len(unique) || size > evidence.MaxPathBytes {
			t.Fatalf("total %d of %d, %d bytes", d.Total, len(unique), size)
		}
		again := evidence.NewDrift(append(slices.Clone(d.Paths), paths...))
		if again.Digest != d.Digest {
			t.Fatal("the digest follows the order or the repeats")
		}
	})
}

// A path that does not fit ends the list, so that the paths shown are the first ones.
func TestNewDrift_CutsAtTheFirstPathThatDoesNotFit(t *testing.T) {
	long, half := strings.Repeat("b", evidence.MaxPathBytes), strings.Repeat("b", evidence.MaxPathBytes/2)
	tests := map[string]struct {
		paths []string
		shown []string
	}{
		"just as long as there is room":        {[]string{long}, []string{long}},
		"one byte longer":                      {[]string{long + "b"}, []string{}},
		"a short path behind a long one":       {[]string{"a", long, "c"}, []string{"a"}},
		"two halves and no more":               {[]string{half, "a" + half[1:], "c"}, []string{"a" + half[1:], half}},
		"one path twice takes the room of one": {[]string{long, long}, []string{long}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.shown, evidence.NewDrift(tc.paths).Paths); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPathsDigest_KeepsPathsApart(t *testing.T) {
	lists := [][]string{nil, {""}, {"", ""}, {"a", "b"}, {"ab"}, {"a\n1 b"}, {"a", "", "b"}, {"b", "a"}}
	seen := map[string][]string{}
	for _, list := range lists {
		d := evidence.PathsDigest(list)
		if other, ok := seen[d]; ok {
			t.Errorf("%q and %q have one digest", list, other)
		}
		seen[d] = list
	}
}

func TestName_ReversesAndOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(1, math.MaxInt64).Draw(t, "a")
		b := rapid.Int64Range(1, math.MaxInt64).Draw(t, "b")
		chain, sequence, ok := evidence.ParseName(evidence.Name(policyUID, a))
		if !ok || chain != policyUID || sequence != a {
			t.Fatalf("got %s %d %t", chain, sequence, ok)
		}
		if (a < b) != (evidence.Name(policyUID, a) < evidence.Name(policyUID, b)) {
			t.Fatalf("%d and %d are not in the order of their names", a, b)
		}
	})
	for _, name := range []string{
		"", "x", "x/1.json", "x/0000000000000000000.json", "x/9999999999999999999.json", "../0000000000000000001.json",
		"x/0000000000000000001.json.tmp", "x/y/0000000000000000001.json", "/0000000000000000001.json",
		"x/000000000000000001a.json", strings.Repeat("x", 65) + "/0000000000000000001.json",
	} {
		if chain, sequence, ok := evidence.ParseName(name); ok || chain != "" || sequence != 0 {
			t.Errorf("%q was taken for a record", name)
		}
	}
}

func TestID_TellsEventsApart(t *testing.T) {
	noPlan := decision(evidence.KindPlanHalted, 0)
	noPlan.Plan = nil
	other := step(0)
	other.Kind = evidence.KindFence
	again := assessment(0) // an assessment that was removed, and made again
	again.Assessment.UID = "another"
	records := []evidence.Record{
		step(0), step(1), other, noPlan, decision(evidence.KindPlanHalted, 0),
		decision(evidence.KindPlanDeferred, 0), decision(evidence.KindPlanDeferred, 1), assessment(0), assessment(1), again,
	}
	seen := map[string]bool{}
	for _, r := range records {
		if seen[r.ID()] {
			t.Errorf("%s is named twice", r.ID())
		}
		seen[r.ID()] = true
	}
	later := step(0)
	later.At, later.Result.State = noon.Add(time.Hour), "Failed"
	if later.ID() != step(0).ID() {
		t.Error(fmt.Sprint("one event has two names: ", later.ID()))
	}
}
