// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/http"
	"time"
)

// editsLedger has a ledger grant nothing for some minutes, as only the holder of the
// executor's token can. The entries and the breakers stay as they are: the judge counts by
// these, and what becomes of their edits is tried on a real API server (test/integration/execute).
func (p *person) editsLedger() {
	path := ledgersPath + "/" + pick(p.Rand(), ledgerNames...)
	o := p.ask(http.MethodGet, path, "", nil)
	if o == nil {
		return
	}
	status, _ := o["status"].(map[string]any)
	sequence, begun := status["sequence"].(int64)
	if !begun {
		return
	}
	status["sequence"] = sequence + 1
	status["grantStartTime"] = time.Now().Add(time.Duration(p.Rand().Int64N(int64(5 * time.Minute)))).UTC().Format(time.RFC3339)
	if p.ask(http.MethodPut, path+"/status", plain, o) != nil {
		p.w.count("ledger edited by hand")
	}
}
