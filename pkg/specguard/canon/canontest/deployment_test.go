// SPDX-License-Identifier: Apache-2.0

package canontest_test

import (
	"encoding/json"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
)

func TestDeploymentsHaveAboutTheSizeAskedFor(t *testing.T) {
	for _, size := range []int{4 << 10, 20 << 10, 100 << 10} {
		body := canontest.Deployment(size)
		if !json.Valid(body) {
			t.Fatalf("no JSON: %s", body)
		}
		if got := len(body); got < size*8/10 || got > size*12/10 {
			t.Errorf("a Deployment of %d bytes has %d", size, got)
		}
	}
}

func TestReadGivesBackWhatWasWritten(t *testing.T) {
	object, err := canontest.Read([]byte(`{"b":[1.0,null,{"a":true}],"c":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	members, isMap := object.(canontest.Members)
	if !isMap || len(members) != 2 || members[0].Key != "b" {
		t.Errorf("read %v", object)
	}
	if _, err := canontest.Read([]byte(`{`)); err == nil {
		t.Error("an unfinished body was read")
	}
}
