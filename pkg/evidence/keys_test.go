// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

func TestKeys_PEM(t *testing.T) {
	private, public, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	k, err := evidence.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	published, err := evidence.PublicPEM(k.Public())
	if diff := cmp.Diff(string(public), string(published)); err != nil || diff != "" {
		t.Errorf("published: %v (-generated +published):\n%s", err, diff)
	}
	_, second, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	ring, err := evidence.ParseKeyring(slicesConcat(public, second))
	if err != nil {
		t.Fatal(err)
	}
	if ids := ring.IDs(); len(ids) != 2 || !strings.Contains(strings.Join(ids, " "), k.KeyID()) {
		t.Errorf("got %v, want two with %s", ids, k.KeyID())
	}
	for _, shown := range []string{fmt.Sprint(k), fmt.Sprintf("%v %+v %#v %s", k, k, k, k)} {
		if strings.Contains(shown, string(private[30:50])) || !strings.Contains(shown, k.KeyID()) {
			t.Errorf("printed as %s", shown)
		}
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "no PEM": []byte("secret-canary"), "a public key": public,
		"a block without a key": []byte("-----BEGIN PRIVATE KEY-----\nc2VjcmV0LWNhbmFyeQ==\n-----END PRIVATE KEY-----\n"),
	} {
		if _, err := evidence.ParsePrivateKey(data); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("private key from %s: got %v", name, err)
		}
	}
	for name, data := range map[string][]byte{"nothing": nil, "a private key": private, "text": []byte("x")} {
		if _, err := evidence.ParseKeyring(public, data); err == nil {
			t.Errorf("keyring from %s: no error", name)
		}
	}
}

// The old keys of a rotation are public keys, and private ones whose successors they sign.
func TestParseOldKeys(t *testing.T) {
	var private, public [2][]byte
	var ids [2]string
	for i := range private {
		var err error
		if private[i], public[i], err = evidence.GenerateKey(); err != nil {
			t.Fatal(err)
		}
		k, err := evidence.ParsePrivateKey(private[i])
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = k.KeyID()
	}
	noKey := []byte("-----BEGIN PRIVATE KEY-----\nc2VjcmV0LWNhbmFyeQ==\n-----END PRIVATE KEY-----\n")
	foreign := []byte("-----BEGIN CERTIFICATE-----\nc2VjcmV0LWNhbmFyeQ==\n-----END CERTIFICATE-----\n")
	tests := map[string]struct {
		data            []byte
		public, private []string
		refused         string
	}{
		"two public keys":                    {data: slicesConcat(public[0], public[1]), public: []string{ids[0], ids[1]}},
		"a private key is a public one, too": {data: private[0], public: []string{ids[0]}, private: []string{ids[0]}},
		"one of each, in their order":        {data: slicesConcat(public[1], private[0]), public: []string{ids[1], ids[0]}, private: []string{ids[0]}},
		"text around the keys":               {data: slicesConcat([]byte("# old\n"), public[0], []byte("# end\n")), public: []string{ids[0]}},
		"nothing":                            {refused: "no PEM block"},
		"text alone":                         {data: []byte("secret-canary"), refused: "no PEM block"},
		"a private block without a key":      {data: slicesConcat(public[0], noKey), refused: "no PKCS#8 key"},
		"a certificate":                      {data: slicesConcat(public[0], foreign), refused: "CERTIFICATE"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			gotPublic, gotPrivate, err := evidence.ParseOldKeys(tc.data)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) || strings.Contains(err.Error(), "canary") {
					t.Errorf("got %v, want an error with %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var public, private []string
			for _, k := range gotPublic {
				id, err := evidence.KeyID(k)
				if err != nil {
					t.Fatal(err)
				}
				public = append(public, id)
			}
			for _, k := range gotPrivate {
				private = append(private, k.KeyID())
			}
			if diff := cmp.Diff([][]string{tc.public, tc.private}, [][]string{public, private}); diff != "" {
				t.Errorf("public and private keys (-want +got):\n%s", diff)
			}
		})
	}
}

// Without a key ring no key is known.
func TestOpen_WithoutKeysBelievesNothing(t *testing.T) {
	_, err := evidence.Open(nil, seal(t, key(t, 1), placed(step(0), 1, "")).Envelope)
	if got := faultOf(err); got != evidence.FaultUnknownKey {
		t.Errorf("got %v", err)
	}
	var none *evidence.Keyring
	if ids := none.IDs(); len(ids) != 0 {
		t.Errorf("it knows %v", ids)
	}
}

// Nothing but Ed25519 signs a record, so a key of another algorithm would verify nothing.
func TestKeys_OfAnotherAlgorithmAreRefused(t *testing.T) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := evidence.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})); err == nil || !strings.Contains(err.Error(), "want Ed25519") {
		t.Errorf("private key: %v", err)
	}
	if _, err := evidence.ParseKeyring(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})); err == nil || !strings.Contains(err.Error(), "want Ed25519") {
		t.Errorf("public key: %v", err)
	}
}

// A derived key is the same after each start, and another one for each key and purpose.
func TestKeys_DeriveOneForEachPurpose(t *testing.T) {
	owner := map[string]string{}
	for range 2 {
		for _, signer := range []byte{1, 2} {
			for _, purpose := range []string{"marks", "others"} {
				secret, err := key(t, signer).DeriveKey(purpose)
				if err != nil || len(secret) != sha256.Size {
					t.Fatalf("%d bytes, %v", len(secret), err)
				}
				of := fmt.Sprint(signer, " ", purpose)
				if other, known := owner[string(secret)]; known && other != of {
					t.Errorf("%s and %s have one key", of, other)
				}
				owner[string(secret)] = of
			}
		}
	}
	if len(owner) != 4 {
		t.Errorf("%d keys for 4 purposes", len(owner))
	}
}
