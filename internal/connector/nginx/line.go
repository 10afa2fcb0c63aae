// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
)

// Line is one request in the log.
type Line struct {
	Arm envoyname.Slot
	// Sequence of the split that decided the request.
	Sequence uint64
	Status   int
	// Endpoint gave the answer; the zero one if nginx answered by itself.
	Endpoint netip.AddrPort
	// Began is when nginx took the request, to the millisecond.
	Began time.Time
}

// mark ends what the protocol of syslog puts before a line.
const mark = " plb: "

// ParseLine reads a datagram of the log. An error says which part is not as [Render] has it.
func ParseLine(datagram []byte) (Line, error) {
	_, text, marked := strings.Cut(string(datagram), mark)
	const count = 5
	fields := strings.SplitN(strings.TrimSuffix(text, "\n"), " ", count)
	if !marked || len(fields) != count {
		return Line{}, fmt.Errorf("reading a line of the log of nginx: %.200q has not %d fields", datagram, count)
	}
	arm, sequence, ours := ParseUpstream(fields[0])
	if !ours {
		return Line{}, fmt.Errorf("reading a line of the log of nginx: %.200q is no upstream of Plumbline", fields[0])
	}
	const lastStatus = 999
	status, err := strconv.ParseUint(fields[1], 10, 16)
	if err != nil || status > lastStatus {
		return Line{}, fmt.Errorf("reading a line of the log of nginx: status %.20q is no number of three digits", fields[1])
	}
	ended, err := parseMilliseconds(fields[2])
	if err != nil {
		return Line{}, err
	}
	took, err := parseMilliseconds(fields[3])
	if err != nil {
		return Line{}, err
	}
	return Line{Arm: arm, Sequence: sequence, Status: int(status), Endpoint: lastEndpoint(fields[4]), Began: time.UnixMilli(ended - took)}, nil
}

// lastEndpoint reads the addresses that nginx has asked in turn; the last one has answered.
func lastEndpoint(asked string) netip.AddrPort {
	last := asked[strings.LastIndex(asked, " ")+1:]
	endpoint, err := netip.ParseAddrPort(last)
	if err != nil {
		return netip.AddrPort{} // a hyphen, or the upstream without a server
	}
	return endpoint
}

// parseMilliseconds reads seconds with three decimals, as nginx writes each time.
func parseMilliseconds(text string) (int64, error) {
	seconds, thousandths, found := strings.Cut(text, ".")
	const decimals, longest = 3, 15
	if !found || len(thousandths) != decimals || len(seconds) > longest-decimals {
		return 0, fmt.Errorf("reading a line of the log of nginx: %.20q is no number of seconds with three decimals", text)
	}
	n, err := strconv.ParseUint(seconds+thousandths, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("reading a line of the log of nginx: %w", err)
	}
	return int64(n), nil //nolint:gosec // 63 bits
}
