// SPDX-License-Identifier: Apache-2.0

package options

import (
	"encoding/json"
	"os"
	"testing"
)

// A key prefix that the chart accepted and the programs refused had all pods end at once, again and again.
func TestTheChartAcceptsTheKeyPrefixesThatTheProgramsAccept(t *testing.T) {
	raw, err := os.ReadFile("../../charts/plumbline/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Redis struct {
				Properties struct {
					KeyPrefix struct{ Pattern string } `json:"keyPrefix"`
				} `json:"properties"`
			} `json:"redis"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	if got := schema.Properties.Redis.Properties.KeyPrefix.Pattern; got != keyPrefix.String() {
		t.Errorf("the chart accepts %s, and the programs %s", got, keyPrefix)
	}
}
