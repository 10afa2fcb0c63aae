// SPDX-License-Identifier: Apache-2.0

// Package provenance says from what, and how, the files of a release were made: an in-toto
// statement with the predicate of SLSA provenance v1. It is signed only with a key.
package provenance

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	payloadType   = "application/vnd.in-toto+json"
	buildType     = "https://github.com/plumbline-dev/plumbline/blob/main/docs/guides/release.md#build-type-v1"
	repository    = "git+https://github.com/plumbline-dev/plumbline"
)

// Subject is a file or an image of the release, with its SHA-256 as hex.
type Subject struct{ Name, SHA256 string }

// Build is how the release was made.
type Build struct {
	Version, Registry string
	Commit            string
	// Dirty says that files differed from the commit, so that the release cannot be made
	// again from it.
	Dirty bool
	// Builder is who made it, as a URI.
	Builder   string
	GoVersion string
	Helm      string
}

type digest map[string]string

type descriptor struct {
	Name   string `json:"name,omitempty"`
	URI    string `json:"uri,omitempty"`
	Digest digest `json:"digest,omitempty"`
}

type statement struct {
	Type          string       `json:"_type"`
	Subject       []descriptor `json:"subject"`
	PredicateType string       `json:"predicateType"`
	Predicate     predicate    `json:"predicate"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]any    `json:"internalParameters"`
		ResolvedDependencies []descriptor      `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// Statement writes the unsigned statement. It has no time of its own, so that the same
// commit gives the same bytes.
func Statement(build Build, subjects []Subject) ([]byte, error) {
	s := statement{Type: statementType, PredicateType: predicateType}
	for _, subject := range subjects {
		s.Subject = append(s.Subject, descriptor{Name: subject.Name, Digest: digest{"sha256": subject.SHA256}})
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = buildType
	definition.ExternalParameters = map[string]string{"version": build.Version, "registry": build.Registry}
	definition.InternalParameters = map[string]any{"go": build.GoVersion, "helm": build.Helm, "dirty": build.Dirty}
	definition.ResolvedDependencies = []descriptor{{URI: repository, Digest: digest{"gitCommit": build.Commit}}}
	s.Predicate.RunDetails.Builder.ID = build.Builder
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the provenance: %w", err)
	}
	return append(content, '\n'), nil
}

// Sign puts a statement into a signed envelope (DSSE).
func Sign(ctx context.Context, statement []byte, key ed25519.PrivateKey) ([]byte, error) {
	signer, err := dsse.NewEnvelopeSigner(ed25519Key{key})
	if err != nil {
		return nil, fmt.Errorf("signing the provenance: %w", err)
	}
	envelope, err := signer.SignPayload(ctx, payloadType, statement)
	if err != nil {
		return nil, fmt.Errorf("signing the provenance: %w", err)
	}
	content, err := json.MarshalIndent(envelope, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the signed provenance: %w", err)
	}
	return append(content, '\n'), nil
}

// ParseKey reads an Ed25519 key in PKCS#8, as `openssl genpkey -algorithm ed25519` makes it.
func ParseKey(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("reading the key: it has no PEM block: make one with `openssl genpkey -algorithm ed25519`")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w: make one with `openssl genpkey -algorithm ed25519`", err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("reading the key: it is a %T, want Ed25519: make one with `openssl genpkey -algorithm ed25519`", parsed)
	}
	return key, nil
}

// ed25519Key signs for the envelope.
type ed25519Key struct{ private ed25519.PrivateKey }

func (k ed25519Key) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(k.private, data), nil
}

// KeyID is the SHA-256 of the public key, as in the specification of the envelope.
func (k ed25519Key) KeyID() (string, error) { return dsse.SHA256KeyID(k.private.Public()) }
