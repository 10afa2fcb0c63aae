// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// BodyOf says what a body is the content of.
type BodyOf string

// The bodies that a record names.
const (
	// BodyPolicy: the spec of the policy, as JSON.
	BodyPolicy BodyOf = "Policy"
	// BodyPlan: the immutable part of the plan, with its targets and their severity.
	BodyPlan BodyOf = "Plan"
	// BodyBefore: the target as it was before the write.
	BodyBefore BodyOf = "Before"
	// BodyAuthorized: the authorized state that the written values come from.
	BodyAuthorized BodyOf = "Authorized"
	// BodyWritten: the target as the write leaves it.
	BodyWritten BodyOf = "Written"
	// BodyCursors: how far the records before this one tell of each release.
	BodyCursors BodyOf = "Cursors"
)

// Body names the content that a record speaks of. The writer stores the content before the
// record, under its digest beside the chain.
type Body struct {
	Of     BodyOf `json:"of"`
	Digest string `json:"digest"`
}

// MaxBody bounds a body in bytes. It is the bound of a BaselineRevision's body, and above
// what the API server takes as one object.
const MaxBody = 8 << 20

// maxBodies bounds what one record names: one body of each sort.
const maxBodies = 5

var bodyPattern = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)/sha256-([0-9a-f]{64})\.json$`)

// BodyName returns the place of the body with a digest, beside the records of a chain. In byte
// order the bodies come after the records.
func BodyName(chain, digest string) string {
	return chain + "/sha256-" + strings.TrimPrefix(digest, digestPrefix) + nameSuffix
}

// ParseBodyName reverses BodyName; false for any name that BodyName never returns.
func ParseBodyName(name string) (chain, digest string, ok bool) {
	m := bodyPattern.FindStringSubmatch(name)
	if m == nil || len(m[1]) > maxUID {
		return "", "", false
	}
	return m[1], digestPrefix + m[2], true
}

// MaxSize returns the largest size, in bytes, of the content under a name.
func MaxSize(name string) int {
	if _, _, ok := ParseBodyName(name); ok {
		return MaxBody
	}
	return MaxEnvelope
}

// BodyError says why a body is not believed.
type BodyError struct {
	Name       string
	Want, Have string // digests
}

func (e *BodyError) Error() string {
	return fmt.Sprintf("evidence %s: digest mismatch: the content has the digest %s", e.Name, e.Have)
}

// Keep stores a body beside a chain, once, and returns its digest. A body that is there already
// is compared: content of another digest is a *BodyError, and a person has to look.
func (w Writer) Keep(ctx context.Context, chain string, body []byte) (string, error) {
	digest := Digest(body)
	if len(body) > MaxBody {
		return "", fmt.Errorf("keeping a body of %d bytes: at most %d are stored", len(body), MaxBody)
	}
	name := BodyName(chain, digest)
	err := w.Store.Create(ctx, name, body)
	if errors.Is(err, ErrExists) {
		_, err = ReadBody(ctx, w.Store, chain, digest)
	}
	if err != nil {
		return "", fmt.Errorf("keeping a body: %w", err)
	}
	return digest, nil
}

// ReadBody reads the body with a digest, and believes it only if it has that digest. The error
// is [ErrNotFound], a *BodyError, or a failure of the store.
func ReadBody(ctx context.Context, store Store, chain, digest string) ([]byte, error) {
	name := BodyName(chain, digest)
	body, err := store.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	if have := Digest(body); have != digest {
		return nil, &BodyError{Name: name, Want: digest, Have: have}
	}
	return body, nil
}

// validateBodies refuses a record that names two bodies of one sort, or another body of the
// policy or plan than the one whose digest it has.
func (r Record) validateBodies() error {
	if len(r.Bodies) > maxBodies {
		return invalid("bodies", "%d, at most %d", len(r.Bodies), maxBodies)
	}
	seen := map[BodyOf]bool{}
	for _, b := range r.Bodies {
		switch {
		case seen[b.Of]:
			return invalid("bodies.of", "%s stands there twice", b.Of)
		case b.Of == BodyPolicy && (r.Policy == nil || r.Policy.Digest != b.Digest):
			return invalid("bodies.digest", "is not that of the policy")
		case b.Of == BodyPlan && (r.Plan == nil || r.Plan.Digest != b.Digest):
			return invalid("bodies.digest", "is not that of the plan")
		}
		seen[b.Of] = true
		if err := required(wordPattern, "bodies.of", string(b.Of), maxName); err != nil {
			return err
		}
		if err := required(digestPattern, "bodies.digest", b.Digest, maxName); err != nil {
			return err
		}
	}
	return nil
}

// Body returns the digest of a body that the record names; empty when it names none.
func (r Record) Body(of BodyOf) string {
	for _, b := range r.Bodies {
		if b.Of == of {
			return b.Digest
		}
	}
	return ""
}

// bodyWalk is what is known of the bodies of a chain up to where the chain has been read.
type bodyWalk struct {
	// named has the first record that names a body, by the name of the body, and order the
	// names in the order of these records.
	named map[string]Sealed
	order []string
	// read are the bodies that are good, or of which the report says what they are.
	read map[string]bool
}

// name remembers the bodies that a good record names.
func (w *bodyWalk) name(s Sealed) {
	if w.named == nil {
		w.named = map[string]Sealed{}
	}
	for _, b := range s.Record.Bodies {
		name := BodyName(s.Record.Chain.UID, b.Digest)
		if _, known := w.named[name]; !known {
			w.named[name] = s
			w.order = append(w.order, name)
		}
	}
}

// visitBody judges a body by its own name. False means that the name is none of a body.
func (v *verifier) visitBody(ctx context.Context, name string) (bool, error) {
	chain, digest, ok := ParseBodyName(name)
	if !ok {
		return false, nil
	}
	if v.chain == nil || v.chain.report.UID != chain {
		v.finish()
		v.begin(chain)
	}
	_, err := ReadBody(ctx, v.store, chain, digest)
	var mismatch *BodyError
	switch {
	case errors.Is(err, ErrNotFound):
		return true, nil // removed since it was listed; a record that names it shows that
	case errors.As(err, &mismatch):
		v.report.add(Problem{
			Kind: ProblemBodyMismatch, Chain: chain, Sequence: v.chain.bodies.named[name].Record.Chain.Sequence, Name: name,
			Text: "digest mismatch: the content has the digest " + mismatch.Have,
		})
	case err != nil:
		return true, err
	default:
		v.chain.report.Bodies++
	}
	v.chain.bodies.see(name)
	return true, nil
}

func (w *bodyWalk) see(name string) {
	if w.read == nil {
		w.read = map[string]bool{}
	}
	w.read[name] = true
}

// missingBodies reports the bodies that good records of the chain name, and the store lacks.
func (v *verifier) missingBodies() {
	w := &v.chain.bodies
	for _, name := range w.order {
		if w.read[name] {
			continue
		}
		s := w.named[name]
		v.report.add(Problem{
			Kind: ProblemBodyMissing, Chain: s.Record.Chain.UID, Sequence: s.Record.Chain.Sequence, Name: name,
			Text: fmt.Sprintf("record %d names the %s, and the store lacks it", s.Record.Chain.Sequence, bodyWords(s.Record, name)),
		})
	}
}

// bodyWords says what a body is, as the record that names it says.
func bodyWords(r Record, name string) string {
	for _, b := range r.Bodies {
		if BodyName(r.Chain.UID, b.Digest) == name {
			return "body " + string(b.Of)
		}
	}
	return "body"
}
