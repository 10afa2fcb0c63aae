// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"bytes"
	"crypto/ed25519"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// Role carries RemediationPlans out.
const Role = "execute"

// unlimited is the value of a cap that is none.
const unlimited = -1

// Options are the flags of the role.
type Options struct {
	// Evidence is where signed records are kept: file:///path or s3://bucket?...
	Evidence string
	// EvidenceKeyFile holds the Ed25519 key that signs them, in PKCS#8 as PEM.
	EvidenceKeyFile string
	// EvidenceOldKeysFile holds keys of before a change of keys, as PEM, the public half of
	// each, or the private half, with which it signs who succeeds it; empty: there are none.
	EvidenceOldKeysFile string
	// ServeEvidence lets the records be read at the health address.
	ServeEvidence bool
	// ReleaseWorks has the executor carry out what releases need written to workloads.
	ReleaseWorks bool
	// Mesh has the executor put objects into quarantine.
	Mesh bool
	// AssessesEffects says that an assessor measures the effect of each step.
	AssessesEffects bool
	// MaxConcurrent, MaxPerHour and MaxPerDay bound the whole cluster; -1 is no cap.
	MaxConcurrent, MaxPerHour, MaxPerDay int
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Evidence, "evidence", "", "role execute: where signed records are kept, file:///path or s3://bucket?region=...")
	fs.StringVar(&o.EvidenceKeyFile, "evidence-key-file", "", "role execute: file with the Ed25519 key that signs records, PKCS#8 as PEM")
	fs.StringVar(&o.EvidenceOldKeysFile, "evidence-old-keys-file", "", "role execute: file with the earlier keys, as PEM: the public half of each, or the private half, which then signs its successor")
	fs.BoolVar(&o.ServeEvidence, "serve-evidence", false, "role execute: let the signed records be read under /evidence/ of the health address")
	fs.BoolVar(&o.ReleaseWorks, "release-works", false, "role execute: carry out the ReleaseWorks of rollouts; it needs the permissions to read ABReleases and Services")
	fs.BoolVar(&o.Mesh, "mesh", false, "role execute: put objects into quarantine where policies ask for it; it needs the permissions to list Services, EndpointSlices, pods and ABReleases")
	fs.BoolVar(&o.AssessesEffects, "await-verdicts", false, "role execute: copy the verdicts of EffectivenessAssessments into plans, and have them turn circuit breakers; an assessor has to make them")
	fs.IntVar(&o.MaxConcurrent, "max-concurrent", 10, "role execute: remediations at once in the whole cluster; -1: no cap")
	fs.IntVar(&o.MaxPerHour, "max-per-hour", 100, "role execute: remediations in any hour in the whole cluster; -1: no cap")
	fs.IntVar(&o.MaxPerDay, "max-per-day", 500, "role execute: remediations in any 24 hours in the whole cluster; -1: no cap")
}

// Validate lists what cannot work, each with the flag as its path.
func (o *Options) Validate() field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("--evidence")
	address, err := url.Parse(o.Evidence)
	switch {
	case o.Evidence == "":
		errs = append(errs, field.Required(path, "the executor writes no object without a record: name the place, as file:///path or s3://bucket"))
	case err != nil:
		errs = append(errs, field.Invalid(path, "(not shown)", "must be a URL"))
	case !slices.Contains([]string{"file", "s3"}, address.Scheme):
		errs = append(errs, field.NotSupported(path, address.Scheme, []string{"file", "s3"}))
	}
	if o.EvidenceKeyFile == "" {
		errs = append(errs, field.Required(field.NewPath("--evidence-key-file"), "records are signed"))
	}
	for name, value := range map[string]int{"max-concurrent": o.MaxConcurrent, "max-per-hour": o.MaxPerHour, "max-per-day": o.MaxPerDay} {
		if value < unlimited || value > 1000 {
			errs = append(errs, field.Invalid(field.NewPath("--"+name), value, "must be -1 to 1000"))
		}
	}
	return errs
}

// Caps of the whole cluster.
func (o *Options) Caps() ledger.Caps {
	bound := func(n int) *int32 {
		if n == unlimited {
			return nil
		}
		return new(int32(n)) //nolint:gosec // at most 1000
	}
	return ledger.Caps{Concurrent: bound(o.MaxConcurrent), PerHour: bound(o.MaxPerHour), PerDay: bound(o.MaxPerDay)}
}

// Keys are those of the records.
type Keys struct {
	// Signer signs; Old sign who succeeds them.
	Signer *evidence.PrivateKey
	Old    []evidence.Signer
	// Ring has all that records may be signed with, and Public the same as PEM.
	Ring   *evidence.Keyring
	Public []byte
}

// Keys reads the key that signs, and all that records may be signed with.
func (o *Options) Keys() (Keys, error) {
	raw, err := os.ReadFile(o.EvidenceKeyFile)
	if err != nil {
		return Keys{}, fmt.Errorf("reading the evidence key: %w", err)
	}
	var k Keys
	if k.Signer, err = evidence.ParsePrivateKey(raw); err != nil {
		return Keys{}, fmt.Errorf("reading the evidence key: %w", err)
	}
	public := []ed25519.PublicKey{k.Signer.Public()}
	if o.EvidenceOldKeysFile != "" {
		raw, err := os.ReadFile(o.EvidenceOldKeysFile)
		if err != nil {
			return Keys{}, fmt.Errorf("reading the evidence keys of before: %w", err)
		}
		old, private, err := evidence.ParseOldKeys(raw)
		if err != nil {
			return Keys{}, fmt.Errorf("reading the evidence keys of before: %w", err)
		}
		public = append(public, old...)
		for _, key := range private {
			k.Old = append(k.Old, key)
		}
	}
	err = k.publish(public)
	return k, err
}

// publish writes the public halves.
func (k *Keys) publish(public []ed25519.PublicKey) (err error) {
	for _, key := range public {
		text, err := evidence.PublicPEM(key)
		if err != nil {
			return fmt.Errorf("writing the public half of an evidence key: %w", err)
		}
		if !bytes.Contains(k.Public, text) {
			k.Public = append(k.Public, text...)
		}
	}
	if k.Ring, err = evidence.NewKeyring(public...); err != nil {
		return fmt.Errorf("reading the evidence keys: %w", err)
	}
	return nil
}
