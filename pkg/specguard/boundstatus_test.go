// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// FuzzAStatusIsBoundedWhateverTheObjectHolds is H8 of the guard's review: a stranger
// adds and removes keys, and then leaves them there together with another image.
func FuzzAStatusIsBoundedWhateverTheObjectHolds(f *testing.F) {
	for _, key := range []string{"k", "\x01", "\x00\x1f", "<", "\"", "\\", "/~", "[=]", "\u2028", "\xff", "é", "😀"} {
		f.Add(key, "\x02"+key, uint16(945), uint8(16))
	}
	f.Add("k", "v", uint16(1), uint8(255))
	f.Add("\x01", "\x01", uint16(4096), uint8(64))
	f.Fuzz(func(t *testing.T, key, value string, length uint16, keys uint8) {
		long := func(text string, length int) string {
			return strings.Repeat(text, 1+length/max(len(text), 1))
		}
		padding := map[string]any{"keep": "1"}
		for i := range int(keys) {
			padding[long(key, int(length)%8192)+strconv.Itoa(i)] = long(value, int(length)%2048)
		}
		w := newWorld(t)
		w.kind("example.org/v1", "Widget")
		w.create(write{user: user("ci")}, `{"spec":{"image":"good","m":{"keep":"1"}}}`)
		w.observe(false, false)
		for range 4 {
			w.put("mallory", "good", padding)
			w.put(long(key, 2048), "good", map[string]any{"keep": "1"})
		}
		w.put("mallory", "evil", padding)
		if w.state.Drift != v1alpha1.StateDrifted {
			t.Fatalf("it is %s", w.standing())
		}
		var status v1alpha1.BaselineStatus
		w.state.WriteStatus(&status)
		total := status.FindingsTotal
		if !BoundStatus(&status) || encodedBytes(status) > MaxStatusBytes {
			t.Errorf("the status has %d bytes", encodedBytes(status))
		}
		if len(status.Findings) == 0 || status.FindingsTotal != total {
			t.Errorf("%d of %d findings are left, there were %d", len(status.Findings), status.FindingsTotal, total)
		}
	})
}

// put has somebody write the whole object, seen at once.
func (w *world) put(who, image string, padding map[string]any) {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"image": image, "m": padding}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.rv++
	w.generation++
	w.now = w.now.Add(time.Second)
	w.live.Body, w.live.Generation, w.live.ResourceVersion = w.parse(raw).AppendCanonical(nil), w.generation, strconv.Itoa(w.rv)
	w.live.Writer = user(who)
	w.observe(false, false)
}

// The metadata goes last: without it an object that is gone is not made again as it was.
func TestAStatusThatItsMetadataMakesTooLargeLosesTheMetadata(t *testing.T) {
	labels := map[string]string{}
	for i := range 256 {
		labels[fmt.Sprint("l", i)] = strings.Repeat("v", MaxStatusBytes/256)
	}
	status := v1alpha1.BaselineStatus{
		State: v1alpha1.StateDrifted, FindingsTotal: 1, Findings: []v1alpha1.Finding{{Path: "spec"}},
		Observed: v1alpha1.ObservedState{UID: "uid", Metadata: &v1alpha1.ObservedMetadata{Labels: labels}},
	}
	if !BoundStatus(&status) {
		t.Errorf("the status has %d bytes", encodedBytes(status))
	}
	if status.Observed.Metadata != nil || status.Observed.UID != "uid" || len(status.Findings) != 1 {
		t.Errorf("what is left is %+v, with %d findings", status.Observed, len(status.Findings))
	}
}

// FuzzEachStatusHasABoundedForm fills each field that names what others chose, up to
// the bounds that the rest of the package keeps.
func FuzzEachStatusHasABoundedForm(f *testing.F) {
	for _, text := range []string{"a", "\x01", "<", "\u2028", "\xff", "é"} {
		for _, counts := range []uint32{0, 0xffffffff, 0x01010101, 0xff00, 0xff} {
			f.Add(text, counts)
		}
	}
	f.Fuzz(func(t *testing.T, text string, counts uint32) {
		if text == "" {
			text = "a"
		}
		status := fullStatus(text, counts)
		total, state := status.FindingsTotal, status.State
		fits := BoundStatus(&status)
		if size := encodedBytes(status); fits != (size <= MaxStatusBytes) || status.State != state {
			t.Fatalf("the status fits is %t, with %d bytes in state %s", fits, size, status.State)
		}
		MinimizeStatus(&status)
		if size := encodedBytes(status); size > MaxStatusBytes {
			t.Errorf("the least status has %d bytes", size)
		}
		if status.State != v1alpha1.StateUnknown || status.FindingsTotal != total || total > 0 && len(status.Findings) != 1 {
			t.Errorf("the least status is %s, with %d of %d findings", status.State, len(status.Findings), status.FindingsTotal)
		}
	})
}

func fullStatus(text string, counts uint32) v1alpha1.BaselineStatus {
	of := func(length int) string { return diff.TruncateText(strings.Repeat(text, 1+length/len(text)), length) }
	count := func(shift, most int) int { return int(counts>>shift&0xff) % (most + 1) }
	actor := v1alpha1.Actor{User: of(maxIdentityBytes), FieldManager: of(maxManagerBytes), BreakGlassReason: of(512)}
	s := v1alpha1.BaselineStatus{
		State: v1alpha1.StateDrifted, CheckRequested: of(256), PlanName: strings.Repeat("c", 253),
		Observed:        v1alpha1.ObservedState{Writer: of(maxIdentityBytes), Metadata: &v1alpha1.ObservedMetadata{Labels: map[string]string{"l": of(16 << 10)}}},
		Oversized:       &v1alpha1.OversizedBody{By: of(maxIdentityBytes)},
		Quarantine:      &v1alpha1.Quarantine{By: of(1024), Reason: of(512), UID: of(128), Token: of(128)},
		EndedQuarantine: &v1alpha1.EndedQuarantine{By: of(1024), Token: of(128), Reason: v1alpha1.QuarantineNotGuarded},
		Contention:      &v1alpha1.Contention{},
	}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionDegraded, v1alpha1.ConditionAcceptanceAllowed, "Recreatable"} {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Message: of(32768)})
	}
	for i := range count(0, maxFindings) {
		s.Findings = append(s.Findings, v1alpha1.Finding{Path: of(1024), Before: of(maxValue), After: of(maxValue), Actor: actor})
		s.FindingsTotal = int32(i + 1)
	}
	for i := range count(8, maxReversals) {
		reversal := v1alpha1.Reversal{}
		for range maxReversalPlaces {
			reversal.Places = append(reversal.Places, v1alpha1.ReversalPlace{Path: of(1024), By: of(maxIdentityBytes)})
		}
		s.Reversals = append(s.Reversals, reversal)
		s.Contention.With = append(s.Contention.With, of(maxIdentityBytes))
		s.Contention.Places = append(s.Contention.Places, v1alpha1.Place{Path: of(1000) + strconv.Itoa(i)})
	}
	for i := range count(16, maxMasks) {
		s.Masks = append(s.Masks, v1alpha1.Mask{Path: fmt.Sprint(i) + of(1000), Value: of(maxValue), Actor: actor})
	}
	for i := range count(24, maxGuards) {
		s.Guards = append(s.Guards, fmt.Sprint("ClusterSpecGuard/", strings.Repeat("g", 250), i))
	}
	return s
}

// A mask that does not fit is a finding at once, and not only after a restart.
func TestMasksHaveABoundOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	spec := testGuardSpec()
	spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "example.org/v1", Kind: "Widget"}}
	spec.ExpectedWriters[0].Paths = []string{"/spec/m/*"}
	w.kind("example.org/v1", "Widget")
	w.guard("shop", spec, testNow)
	w.create(write{user: user("ci")}, `{"spec":{"image":"good","m":{"keep":"1"}}}`)
	w.observe(false, false)
	padding := map[string]any{"keep": "1"}
	for i := range maxMasks {
		padding[strings.Repeat("\x01", 900)+strconv.Itoa(i)] = "1"
	}
	w.put("hpa", "good", padding)
	masks, findings := len(w.state.Masks), w.state.FindingsTotal
	if masks == 0 || findings == 0 || masks+findings != maxMasks || encodedBytes(w.state.Masks) > maxMaskBytes+maxMasks {
		t.Errorf("%d masks of %d bytes and %d findings", masks, encodedBytes(w.state.Masks), findings)
	}
	restarted(w)
	if len(w.state.Masks) != masks || w.state.FindingsTotal != findings {
		t.Errorf("after a restart %d masks and %d findings, before %d and %d", len(w.state.Masks), w.state.FindingsTotal, masks, findings)
	}
}

// An object is seldom selected by more guards than its Baseline may name.
func TestGuardsThatSelectAnObjectAreBounded(t *testing.T) {
	w := newWorld(t)
	for i := range maxGuards + 1 {
		w.guard(fmt.Sprintf("g%03d", i), testGuardSpec(), testNow)
	}
	if n := len(w.rules.ListSelectingGuards()); n != maxGuards {
		t.Errorf("%d guards are named, want %d", n, maxGuards)
	}
}
