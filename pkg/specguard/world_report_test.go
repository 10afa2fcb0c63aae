// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func lastEffect(effects []Effect) Effect {
	if len(effects) == 0 {
		return nil
	}
	return effects[len(effects)-1]
}

// checkInvariants holds after every step of every test: findings are empty if
// and only if the observed hash is the authorized one.
func (w *world) checkInvariants(o Observation) {
	w.t.Helper()
	st := w.state
	if w.rules.Empty() {
		return
	}
	p, ok := o.(Present)
	if !ok || st.Observed.ResourceVersion != p.ResourceVersion || st.Drift == v1alpha1.StateUnknown || !st.authorizes() {
		return
	}
	hash, err := ObservedHash(p.Body, st.Body, w.gvk, w.rules, st.Masks)
	if err != nil {
		w.t.Fatalf("observed hash: %v", err)
	}
	if string(hash) != st.Observed.Hash {
		w.t.Fatalf("observed hash is %s, the status says %s", hash, st.Observed.Hash)
	}
	own, err := GuardedHash(st.Body, w.gvk, w.rules)
	if err != nil || string(own) != st.Authorized.Hash {
		w.t.Fatalf("authorized hash is %s of body %s (%v)", st.Authorized.Hash, own, err)
	}
	if (st.FindingsTotal == 0) != (st.Observed.Hash == st.Authorized.Hash) {
		w.t.Fatalf("%d findings, but observed %s and authorized %s", st.FindingsTotal, st.Observed.Hash, st.Authorized.Hash)
	}
	if (st.FindingsTotal == 0) != (st.Drift == v1alpha1.StateInSync) {
		w.t.Fatalf("%d findings and state %s", st.FindingsTotal, st.Drift)
	}
}

// report is what a person sees.
func (w *world) report() string {
	var b strings.Builder
	st := w.state
	fmt.Fprintf(&b, "%s", cmpOr(string(st.Drift), "never seen"))
	if a := st.Authorized; a != nil {
		fmt.Fprintf(&b, ", revision %d %s", a.Number, a.Origin)
		if a.By != "" {
			fmt.Fprintf(&b, " by %s", a.By)
		}
	} else {
		b.WriteString(", nothing authorized")
	}
	if !st.RetiredAt.IsZero() {
		b.WriteString(", retired")
	}
	b.WriteString(hashLine(st) + "\n")
	for _, f := range st.Findings {
		fmt.Fprintf(&b, "  finding %s %s %s/%s: %s -> %s by %s\n", cmpOr(f.Path, "(object)"), f.Operation, f.Type, f.Class,
			cmpOr(f.Before, "-"), cmpOr(f.After, "-"), showActor(f.Actor))
	}
	for _, m := range st.Masks {
		fmt.Fprintf(&b, "  mask %s = %s under %s by %s\n", m.Path, m.Value, m.Rule, showActor(m.Actor))
	}
	if c := st.Contention; c != nil {
		fmt.Fprintf(&b, "  contended: %s\n", strings.Join(c.With, ", "))
	}
	for _, e := range w.effects {
		fmt.Fprintf(&b, "  %s\n", showEffect(e))
	}
	w.effects = nil
	return b.String()
}

// hashLine compares the observed hash with the authorized one.
func hashLine(st State) string {
	switch {
	case !st.authorizes() || st.Observed.Hash == "":
		return ""
	case st.Observed.Hash == HashAbsent:
		return ", absent"
	case st.Observed.Hash == st.Authorized.Hash:
		return ", hash =="
	default:
		return ", hash !="
	}
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func showActor(a v1alpha1.Actor) string {
	text := fmt.Sprintf("%s (%s, %s", cmpOr(a.User, "?"), a.Class, a.Source)
	if a.FieldManager != "" && a.User == "" {
		text += " " + a.FieldManager
	}
	return text + ")"
}

func showEffect(e Effect) string {
	switch e := e.(type) {
	case AuthorizeRevision:
		return fmt.Sprintf("effect: store revision %d", e.Number)
	case BackfillHash:
		return "effect: back-fill hash"
	case ClearAccept:
		return "effect: clear accept"
	case RemoveBaseline:
		return "effect: remove baseline"
	case Recheck:
		return fmt.Sprintf("effect: look again in %s", e.After)
	case Retry:
		return fmt.Sprintf("effect: retry in %s", e.After)
	case Event:
		return fmt.Sprintf("%s %s: %s", e.Type, e.Reason, shortHashes(e.Message))
	default:
		return fmt.Sprintf("effect: %T", e)
	}
}

// shortHashes keeps hashes out of scripts: they say nothing to a reader.
func shortHashes(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		if strings.HasPrefix(word, "pl1:") {
			words[i] = "<hash>"
		}
	}
	return strings.Join(words, " ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
