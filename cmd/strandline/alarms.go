package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/strandline/strandline/catalog"
)

// alarmOut is something that the system found and an operator should hear of.
type alarmOut struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Subject string    `json:"subject"`
	Detail  string    `json:"detail"`
}

// alarming are the kinds of audit rows that are no news of usual work.
func alarming() []string {
	return []string{"clock", "bucket", "rolled-back", "lost", "damage", "corruption"}
}

const (
	alarmsShown = 10
	// alarmsWithin is how far back in the audit table status looks: alarms that are older
	// than so many rows have been seen, or are told of again.
	alarmsWithin = 1000
)

// recentAlarms are the latest alarms, oldest first.
func recentAlarms(ctx context.Context, cat catalog.Inspector) ([]alarmOut, error) {
	last, err := lastAudit(ctx, cat)
	if err != nil {
		return nil, err
	}
	rows, err := cat.AuditRows(ctx, max(0, last-alarmsWithin), alarmsWithin)
	if err != nil {
		return nil, err
	}
	out := []alarmOut{}
	for _, r := range rows {
		if slices.Contains(alarming(), r.Kind) {
			out = append(out, alarmOut{r.Time.UTC(), r.Kind, r.Subject, r.Detail})
		}
	}
	return out[max(0, len(out)-alarmsShown):], nil
}

// lastAudit is the seq of the last audit row, found by halving: the table is read
// forwards only, and may be long.
func lastAudit(ctx context.Context, cat catalog.Inspector) (int64, error) {
	beyond := func(seq int64) (bool, error) {
		rows, err := cat.AuditRows(ctx, seq, 1)
		return len(rows) == 0, err
	}
	low, high := int64(0), int64(1) // a row is beyond low or there is none; none is beyond high in the end
	for {
		none, err := beyond(high)
		if err != nil {
			return 0, err
		}
		if none {
			break
		}
		low, high = high, 2*high
	}
	for low < high {
		middle := low + (high-low)/2
		none, err := beyond(middle)
		if err != nil {
			return 0, err
		}
		if none {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high, nil
}

func (a *app) printAlarms(alarms []alarmOut) {
	if len(alarms) == 0 {
		return
	}
	fmt.Fprintln(a.out, "\nlatest alarms:")
	for _, al := range alarms {
		fmt.Fprintf(a.out, "  %s %s %s: %s\n", al.Time.Format(time.RFC3339), al.Kind, al.Subject, al.Detail)
	}
}
