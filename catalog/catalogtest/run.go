package catalogtest

import "testing"

// Run runs the suite against an implementation.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Open)
	}{
		{"Settings", testSettings},
		{"Topology", testTopology},
		{"Auditors", testAuditors},
		{"Audit", testAudit},
		{"Acquire", testAcquire},
		{"Lease", testLease},
		{"AcquireRace", testAcquireRace},
		{"Absorb", testAbsorb},
		{"AbsorbGuards", testAbsorbGuards},
		{"AbsorbAgain", testAbsorbAgain},
		{"AbsorbInvalid", testAbsorbInvalid},
		{"AbsorbVoid", testAbsorbVoid},
		{"AbsorbConsumers", testAbsorbConsumers},
		{"AbsorbClosed", testAbsorbClosed},
		{"AbsorbDead", testAbsorbDead},
		{"AbsorbRace", testAbsorbRace},
		{"AbsorbPlain", testAbsorbPlain},
		{"Markers", testMarkers},
		{"ArmDuringRun", testArmDuringRun},
		{"TakeRace", testTakeRace},
		{"TakeOrder", testTakeOrder},
		{"NextDue", testNextDue},
		{"LeaseDuty", testLeaseDuty},
		{"Window", testWindow},
		{"Announce", testAnnounce},
		{"Uploads", testUploads},
		{"Commit", testCommit},
		{"CommitGuards", testCommitGuards},
		{"CommitTruncated", testCommitTruncated},
		{"CommitTrimmed", testCommitTrimmed},
		{"CommitCut", testCommitCut},
		{"CommitAgain", testCommitAgain},
		{"CommitUploads", testCommitUploads},
		{"ResolveSettled", testResolveSettled},
		{"Reap", testReap},
		{"ReapGrace", testReapGrace},
		{"Judge", testJudge},
		{"JudgeTakeover", testJudgeTakeover},
		{"RemoveIntent", testRemoveIntent},
		{"TrimCheck", testTrimCheck},
		{"TrimCheckEarly", testTrimCheckEarly},
		{"TrimConsumers", testTrimConsumers},
		{"TrimStream", testTrimStream},
		{"DeleteStream", testDeleteStream},
		{"Walk", testWalk},
		{"Retire", testRetire},
		{"Journal", testJournal},
		{"Plan", testPlan},
		{"Pages", testPages},
		{"Status", testStatus},
		{"CancelledContext", testCancelled},
		{"TestK1", testK1},
		{"TestK4", testK4},
		{"TestK13", testK13},
		{"TestK18", testK18},
		{"TestK19", testK19},
		{"Random", testRandom},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open) })
	}
}
