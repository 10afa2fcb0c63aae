// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"fmt"
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
	// Began is when nginx took the request, to the millisecond.
	Began time.Time
}

// mark ends what the protocol of syslog puts before a line.
const mark = " plb: "

// ParseLine reads a datagram of the log. An error says which part is not as [Render] has it.
func ParseLine(datagram []byte) (Line, error) {
	_, text, marked := strings.Cut(string(datagram), mark)
	fields := strings.Split(strings.TrimSuffix(text, "\n"), " ")
	if !marked || len(fields) != 4 {
		return Line{}, fmt.Errorf("reading a line of the log of nginx: %.200q has not four fields", datagram)
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
	return Line{Arm: arm, Sequence: sequence, Status: int(status), Began: time.UnixMilli(ended - took)}, nil
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

// Counts of the requests of an arm.
type Counts struct {
	// Answered have an answer, those of nginx itself included; Failed are 5xx and ClientErrors 4xx of
	// them. GivenUp are those that their client ended before the answer (499).
	Answered, Failed, ClientErrors, GivenUp uint64
}

// Add counts one request.
func (c Counts) Add(status int) Counts {
	const givenUp, client, server = 499, 400, 500
	if status == givenUp {
		c.GivenUp++
		return c
	}
	c.Answered++
	switch {
	case status >= server:
		c.Failed++
	case status >= client:
		c.ClientErrors++
	}
	return c
}
