package column

import "github.com/strandline/strandline/catalog"

// The columns of the tables, as Marker and Intent read them.
const (
	Markers = "duty, id, version, due, class, confirmed_at, lease_owner, lease_end, attempts, last_error"
	Intents = "key, class, serves, nonce, uploads, announced, deadline, state, changed"
)

// Marker reads Markers; confirmedAt gets the time of a confirmation, as Nanos has it.
func Marker(scan Scan, confirmedAt *int64) (catalog.Marker, error) {
	var m catalog.Marker
	var due, lease int64
	err := scan((*string)(&m.Duty), &m.ID, &m.Version, &due, (*string)(&m.Class), confirmedAt, &m.LeaseOwner, &lease, &m.Attempts, &m.LastError)
	m.Due, m.LeaseEnd, m.Confirmed = At(due), At(lease), *confirmedAt != 0
	return m, err
}

// Intent reads Intents.
func Intent(scan Scan) (catalog.Intent, error) {
	var in catalog.Intent
	var uploads string
	var announced, deadline, changed int64
	if err := scan(&in.Key, (*string)(&in.Class), &in.Serves, &in.Nonce, &uploads, &announced, &deadline, (*string)(&in.State), &changed); err != nil {
		return in, err
	}
	in.Announced, in.Deadline, in.Changed = At(announced), At(deadline), At(changed)
	return in, FromJSON("uploads of intent "+in.Key, uploads, &in.Uploads)
}

// Uploads is the column of an intent's uploads.
func Uploads(ids []string) (string, error) {
	if ids == nil {
		ids = []string{}
	}
	return JSON(ids)
}
