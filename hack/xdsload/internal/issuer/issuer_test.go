// SPDX-License-Identifier: Apache-2.0

package issuer_test

import (
	"testing"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/issuer"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

func TestATokenIsThatOfItsProxyForWhoHasTheKeyAlone(t *testing.T) {
	one, err := issuer.New()
	if err != nil {
		t.Fatal(err)
	}
	other, err := issuer.New()
	if err != nil {
		t.Fatal(err)
	}
	key, err := one.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	same, err := issuer.Parse(key)
	if err != nil {
		t.Fatal(err)
	}
	token, err := same.Token(17)
	if err != nil {
		t.Fatal(err)
	}
	got, err := identity.New(identity.Config{API: one, Pods: one}).Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := issuer.Proxy(got.Pod); err != nil || n != 17 {
		t.Errorf("it is of %+v", got)
	}
	if _, err := identity.New(identity.Config{API: other, Pods: other}).Verify(t.Context(), token); err == nil {
		t.Error("another issuer takes it")
	}
}
