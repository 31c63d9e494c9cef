// SPDX-License-Identifier: Apache-2.0

// Package bugs holds the list of bugs that users and researchers have found in
// other database operators, and what shows that none of them is here. Beneath
// each is
//
//   - a test: its folder, its function, and, in quotes, the row or the step of it;
//   - or "never, because", and why it can't happen by construction;
//   - or "waits for", and what there has to be before it could happen.
//
// The tests of this package hold the list to the tests that it names.
//
// # A. A change of the spec is ignored, or what was taken out stays
//
//	rabbitmq #968: a key of an annotation is replaced by another, and both remain
//		internal/objects TestEveryFieldOfASpecShowsInTheChildrenAndGoesWithoutATrace
//		test/integration TestWhatIsTakenOutOfASpecGoesFromTheChildren "a key of a peer's selector, for another"
//		test/integration TestWhatIsTakenOutOfASpecGoesFromTheChildren "a key of a map, for another"
//		test/integration TestAServiceKeepsWhatOthersAddedAndItsAddress
//	cass-operator #330: a label that is taken out stays
//		test/integration TestWhatIsTakenOutOfASpecGoesFromTheChildren "a peer"
//		test/integration TestWhatIsTakenOutOfASpecGoesFromTheChildren "a key of a map, for another"
//		test/integration TestWhatTheSpecNoLongerSaysIsRemovedAndWhatOthersAddedStays
//		test/integration TestWhatAnEarlierIntentSetIsRemoved
//	cockroach #927: annotations that are set to null stay
//		test/e2e TestOnlyWhoIsAdmittedReachesADatabase "{\"spec\":{\"networkPolicy\":null}}"
//		test/integration TestAcceptedSpecs "optional fields that are null"
//	zookeeper #474 (PR 492): a field counts when the object is created, and not later
//		never, because one rendering is what is created and what is applied later
//		internal/objects TestEveryFieldOfASpecShowsInTheChildrenAndGoesWithoutATrace
//	OT redis (Acto, #110): a field is accepted, and nothing comes of it
//		internal/objects TestEveryFieldOfASpecShowsInTheChildrenAndGoesWithoutATrace
//		internal/objects TestEveryOtherFieldOfASpecShowsInWhatIsDoneOrSaid
//		test/integration TestWhatOnlySeveralMembersHaveComesAndGoesWithThem
//	solr-operator #673: what a setting brought into being stays when it is turned off
//		internal/plan TestThePlanOf "an old ConfigMap goes once no member has it mounted"
//		test/integration TestWhatIsTakenOutOfASpecGoesFromTheChildren "a load balancer, and annotations for it"
//		test/integration TestWhatOnlySeveralMembersHaveComesAndGoesWithThem
//	StarRocks #68: a configuration changes, and the pods go on with the old one
//		internal/objects TestOtherFilesAreAnotherConfigMapAndAnotherTemplate
//		internal/objects TestOnlyAParameterThatIsFixedChangesTheWorkload
//		test/e2e TestEngines "isTuned"
//		test/integration TestAMemberWithAVolumeIsReplacedWhenTheSpecChanges
//	ucloud redis #115, tarantool #61: only the image and the number of replicas are compared
//		internal/intent TestDriftIs
//		internal/intent TestTheHashTellsIntentsApart
//		test/integration TestWhatIsOursIsPutBackWhenItIsChanged
//	OT redis #1185, SigNoz PR 868: a security context is dropped in silence
//		internal/objects FuzzEveryMemberPassesPodSecurityRestricted
//		internal/objects TestWhatIsRenderedIsInTestdata
//
// # B. A bad value is accepted, and then there is no way back
//
//	CNPG #3541: an affinity that can't be met is reverted, and the rollout is stuck for ever
//		internal/plan TestARevertFreesAMemberThatIsStuckOnWhatWasWrong "no node has room"
//		test/e2e TestAStatusSaysWhatIsWrong "one that is changed so that no node has room"
//	OT redis #480: the same, with the affinity of leader and follower
//		internal/plan TestARevertFreesAMemberThatIsStuckOnWhatWasWrong "no node has room"
//	cass-operator #334: the same, with nodeAffinityLabels
//		internal/plan TestARevertFreesAMemberThatIsStuckOnWhatWasWrong "no node has room"
//	tidb #4946: an unhealthy cluster isn't changed, even back
//		internal/plan TestARevertFreesAMemberThatIsStuckOnWhatWasWrong "it runs and doesn't answer"
//		internal/plan TestThePlanOf "a member of an older revision is replaced, ready or not"
//	mongodb-community (Acto, #157): a version that the data can't follow, and no way back
//		test/e2e TestEngines "changesVersion"
//		internal/dbclient/redis TestDataOfAnOlderVersionAreOpenedAndThenNoMoreByThatVersion
//		internal/dbclient/mysql TestANewerMariaDBOpensOlderDataAndNotTheOtherWayRound
//		internal/dbclient/postgresql TestNeitherVersionOpensTheDataOfTheOtherAndEachItsOwn
//	mongodb-community (Acto, #199): a bad field of the pod template waits for ever
//		never, because a spec has no pod template; what the API server refuses is told
//		test/integration TestAStepThatTheAPIServerRefusesIsToldAndTriedAgain
//	VictoriaMetrics #271: a typing error in an image is corrected, to no effect
//		internal/plan TestARevertFreesAMemberThatIsStuckOnWhatWasWrong "the image doesn't exist"
//		test/e2e TestAStatusSaysWhatIsWrong "one that is changed to an image that doesn't exist"
//	humio #210: one pod is unhealthy, and changes are ignored
//		internal/plan TestThePlanOf "a spec is applied though the member is broken"
//	rabbitmq #884: a spec that can't work is tried again without end, and without a word
//		test/integration TestASpecThatCantBeRenderedChangesNothingAndHealsWithTheSpec
//		internal/kit TestAKeyIsSyncedAgain
//	mariadb-operator #864 (Oat): from one way of replication to another, and stuck
//		never, because a mode is no more than what the primary waits for: nothing is made anew for it
//		internal/plan TestNoFaultLosesAnAcknowledgedCommit
//		test/integration TestAcceptedChanges "another mode"
//	tidb #865: a failover and a rolling upgrade wait for each other
//		never, because an update replaces nobody while a member lacks the primary's data, but one that is of no use as it is
//		internal/plan TestNoFaultLosesAnAcknowledgedCommit
//		internal/plan TestWhateverHappensThePlanStaysSafeAndConverges
//	tidb #5834 (Oat): scaled in and out again, a member comes back with what the others forgot
//		never, because a member that comes back is compared with the primary, and copies its data where the two have parted
//		internal/plan TestNoFaultLosesAnAcknowledgedCommit
//	CNPG #11032: demoting a member cleanly needs what the member lacks
//		never, because a former primary is demoted by its own start, or by a statement, and needs no other container for it
//		internal/dbclient/postgresql TestAFormerPrimaryTakesNoWritesFromItsStartOn
//		internal/dbclient/redis TestADemotionWaitsForAReplicaThatStandsStillAndGoesOnAsBefore
//	percona-server-mysql #1393: recovery from a full crash asks that every pod is ready
//		internal/plan TestWhateverHappensThePlanStaysSafeAndConverges
//		internal/plan TestTheStepsOfAFailover "then the one that has most is recorded"
//		internal/plan TestWhatIsMissingOfTheReplicationIsTold "QuorumLost with who is missing, how many are needed, and the human's answer"
//	mariadb-operator #1264: one instance is stuck, and others starve
//		internal/kit TestAKeyThatPanicsOrHangsStopsNoOther
//		internal/kit TestAMemberThatHangsIsSilentWithinFifteenSeconds
//		internal/dbclient/postgresql TestASilentMemberIsGivenUp
//		internal/dbclient/mysql TestAMemberThatSaysNothingTimesOut
//
// # C. A crash, or a conflict, between two writes
//
//	rabbitmq #782: a crash after the new size was recorded, and the volume is never resized
//		internal/plan TestAVolumeGrows "where more is wanted, while it is silent"
//		test/integration TestAVolumeGrowsAndTheStatefulSetFollows
//	casskop #370: a crash after a pod was deleted, and the phase never moves on
//		never, because nothing is decided from a status
//		test/faults TestOneFaultAtEachWrite
//		test/integration TestAStatusThatIsDeletedIsWrittenAgain
//	K8SPXC-896, K8SPXC-897: a crash, and the cluster comes up without TLS
//		waits for TLS: until then TransportEncrypted is False and says so
//	K8SPSMDB-578, K8SPSMDB-579: a crash, and one Secret is missing for good
//		internal/plan TestEachChildThatIsMissingIsMadeAndNoOther
//		test/faults TestOneFaultAtEachWrite
//	K8SSAND-1023: a crash, a Secret is missing, and pods never start
//		internal/plan TestEachChildThatIsMissingIsMadeAndNoOther
//	CNPG #11039: a volume claim was made, the next step failed, and the claim counts as a member
//		internal/plan TestEachChildThatIsMissingIsMadeAndNoOther
//		internal/plan TestAClaimThatWasNeverUsedIsAdoptedWithoutADataSet
//		test/integration TestAClaimThatWasLeftBehindIsAdoptedOnlyIfItFits
//	CNPG #10491: a counter is stored before what it counts, and names have gaps
//		never, because names follow from spec.deploymentName and an ordinal; nothing is counted
//	CNPG #11075: an empty token overwrites the one that was stored
//		internal/plan TestWhatIsRecalled "nothing, where a Secret has no password"
//		test/integration TestASecretWithoutAPasswordIsNotOverwritten
//		internal/dbclient/mysql TestAnEmptyPasswordIsRefused
//
// # D. A view that is stale, or that missed something
//
//	cass-operator #412, instaclustr #402, casskop #316: the deletion of an older resource of the same name deletes the volumes of the new one
//		internal/plan TestNothingIsPlannedOnceDeletionHasBegun
//		internal/plan TestWhateverHappensThePlanStaysSafeAndConverges "%s: nothing but configuration is ever deleted"
//		test/integration TestWhatADatabaseLeavesBehindIsAdoptedByTheNext
//	instaclustr #407: a volume in use is deleted on a stale view of its pod
//		never, because the operator has no right to delete a volume claim, and plans no such thing
//		test/bugs TestTheOperatorMayNotDoWhatItNeverDoes
//	instaclustr #404: the StatefulSet of a deleted resource is made again
//		test/integration TestNothingIsMadeForADatabaseThatHasJustBeenDeleted
//		internal/controller/databasemanager TestNothingIsMadeForADatabaseThatIsNotTheOneThatWasRead
//	K8SPSMDB-430, -433, -438, K8SPXC-716, -725, -763: parts are torn down on a stale view
//		internal/plan TestWhateverHappensThePlanStaysSafeAndConverges "%s: nothing but configuration is ever deleted"
//		internal/kit TestWhatIsInTheWayOfAWrite "another one than that to be deleted"
//	zookeeper #312, #314: a volume is marked as deleted, a cluster scaled down, on a stale view
//		internal/plan TestWhateverHappensThePlanStaysSafeAndConverges "%s: nothing but configuration is ever deleted"
//		never, because the operator has no right to delete a volume claim
//		test/bugs TestTheOperatorMayNotDoWhatItNeverDoes
//	yugabyte #35, #36: a Secret and a Service are deleted and made again
//		internal/plan TestWhateverHappensThePlanStaysSafeAndConverges "%s: nothing but configuration is ever deleted"
//	instaclustr #398, casskop #342, K8SPSMDB-585, K8SPXC-918, rabbitmq #758, yugabyte #39: a state that passed quickly wasn't seen, and what follows from it doesn't happen
//		test/faults TestWhatHappensWhileTheWatchesAreCutIsSeenAfterwards
//		test/integration TestADatabaseThatWasDeletedWhileTheOperatorWasDownIsGone
//	CNPG #10989, #11071: something exists that the cache doesn't show, and that is an error for good
//		internal/kit TestWhatIsInTheWayOfAWrite "one of ours, made a moment ago: it is as good as new"
//		test/faults TestOneFaultAtEachWrite
//	kuberay #715: pods are counted in a stale cache, and one too many is made
//		never, because Kubernetes' own controllers make the pods
//		internal/kit TestAKeyIsBehindUntilItsCacheHasSeenItsLastWrite
//		internal/kit TestAKeyIsBehindUntilWhatItDeletedIsSeenToGo
//	kubernetes #56355: a controller starts before one of its caches has synced
//		internal/kit TestReadinessFollowsTheCaches
//		internal/kit TestAFirstListIsConsistent
//		internal/kit TestACacheThatDoesntSayHowFarItIsIsRefused
//
// # E. Panics
//
//	OT redis #175, #162, #105, #110, #921, PR 323: a part that is optional is absent, the operator crashes, and nothing is managed any more
//		internal/objects TestWhateverIsOptionalMayBeAbsentOrEmpty
//		internal/plan TestWhatSaysNothingIsNoReasonToPanic
//		internal/kit TestAKeyThatPanicsOrHangsStopsNoOther
//		test/integration TestOldObjectsThatWouldBeRefusedTodayHarmNobody
//	CNPG #10667: what a resource refers to is gone, and the operator crashes
//		never, because a DatabaseManager refers to no other resource
//		internal/plan TestWhatSaysNothingIsNoReasonToPanic
//	percona-server-mysql PR 2179: a Secret can't be read, and the operator crashes
//		internal/plan TestWhatIsRecalled "nothing, where a Secret has no password"
//		internal/plan TestWhatSaysNothingIsNoReasonToPanic
//	K8SPSMDB-434: something isn't there, and the operator crashes
//		internal/plan TestWhatSaysNothingIsNoReasonToPanic
//		internal/plan TestEachChildThatIsMissingIsMadeAndNoOther
//
// # F. Harm to the wrong thing
//
//	CNPG #10870: a second resource for the same database is deleted, and the database with it
//		test/integration TestASecondDatabaseWithTheSameStemWaits
//		internal/plan TestWhoseAnObjectIs
//	CNPG #10834: access is turned off and on, and a password that was remembered locks everybody out
//		internal/plan TestThePlanOf "a member that is older than a Secret's password is restarted with it"
//		internal/plan TestARunningServerIsTuned "with the application's password"
//		test/e2e TestEngines "isRotated"
//		internal/dbclient/redis TestAnyPasswordInTheFilesCountsFromTheNextStart
//		internal/dbclient/mysql TestAMemberTakesItsPasswordsFromTheFilesAtEveryStart
//		internal/dbclient/postgresql TestPasswordsThatChangedHoldFromTheNextStartOn
//	CNPG #10409: the old primary keeps its label, and writes go there and are lost
//		internal/plan TestLabelsSayWhoIsWho "the primary loses its own before the first is fenced"
//		internal/plan TestNoFaultLosesAnAcknowledgedCommit
//	percona-server-mongodb PR 253: jobs of others are removed
//		internal/plan TestThePlanOf "a ConfigMap that isn't ours is never deleted"
//	CNPG #11006: a new member overwrites data that were there
//		internal/dbclient/redis TestNothingIsGivenUpBeforeTheSourceAnswers
//		internal/dbclient/postgresql TestACopyThatWasCutOffIsMadeAnewAndAWholeOneIsKept
//		internal/dbclient/redis TestAMemberRefusesAVolumeThatIsntItsOwn
//		internal/dbclient/mysql TestAMemberStartsOnNothingThatIsntItsOwn
//		internal/dbclient/postgresql TestAMemberRefusesAVolumeThatIsntItsOwn
//
// # G. Security
//
//	CVE-2026-44477 (CNPG): statements run as superuser where a user of the database can tamper with them
//		never, because nothing is queried in the application's database, and there is no exporter
//		internal/dbclient/postgresql TestNothingElseStandsInForWhatTheOperatorUses
//		internal/dbclient/postgresql TestTheApplicationCanDoItsWorkAndNothingElse
//	CVE-2026-55769 (CNPG): a search_path puts a user's functions before the built-in ones
//		internal/dbclient/postgresql TestNothingElseStandsInForWhatTheOperatorUses
//		internal/dbclient/postgresql TestTheDriversEnvironmentChangesNothing
//	GHSA-7qwx-x8ff-3px9 (CNPG): a port for control, without authentication
//		never, because a member runs the engine and no agent
//		internal/dbclient/mysql TestAMemberListensOnBothFamiliesAndNoOtherPort
//		internal/dbclient/mysql TestNobodyComesInWithoutAPassword
//	mariadb-operator #1722, bitpoke mysql #943, db-operator #353: fields of a resource become SQL
//		never, because a connection is given an address and credentials, and its statements are constants
//		internal/objects TestNoTextOfASpecReachesAFileOrACommand
//	CVE-2026-39961 (Aiven), CVE-2024-43803, CVE-2025-29781 (metal3), CVE-2025-64171 (marin3r), CVE-2026-54495 (open-feature): a resource makes the operator read another namespace
//		internal/objects TestASpecReachesNoOtherNamespace
//		test/integration TestAnOperatorOfOneNamespaceNeedsRolesOnly
//	CVE-2026-50564, CVE-2026-50545 (Fission): a pod specification is merged unfiltered
//		never, because a spec has no pod specification
//		internal/objects FuzzEveryMemberPassesPodSecurityRestricted
//	CVE-2025-2843, CVE-2025-13888, CVE-2023-29018: the author of a resource gains the operator's powers
//		never, because the operator makes no account, role or binding of Kubernetes, and pods get no token
//		test/bugs TestTheOperatorMayNotDoWhatItNeverDoes
//		internal/objects FuzzEveryMemberPassesPodSecurityRestricted
//		test/e2e/rights TestTheOperatorHasTheRightsThatItUsesAndNoOthers
//	CVE-2024-31391 (Solr): probes show a password
//		internal/objects TestWhatTheKubeletRunsNeedsNoCredential
//		internal/objects FuzzRenderingIsDeterministicAndKeepsPasswordsToSecrets
//	k8ssandra #1396: a password in events
//		test/e2e TestEngines "keepsItsSecrets"
//		internal/plan TestNoFormattingShowsAPassword
//	kubeblocks #7848, #7854, Altinity #1416, CVE-2025-62879: a password, hash or token in logs
//		test/e2e TestEngines "keepsItsSecrets"
//		internal/plan TestNoFormattingShowsAPassword
//		internal/dbclient/redis TestAMemberThatIsntThereFailsWithoutNamingAddressOrPassword
//		internal/dbclient/redis TestNoPasswordIsInAFileOrAnArgument
//		internal/dbclient/mysql TestNoPasswordIsWhereItCouldBeRead
//		internal/dbclient/postgresql TestNoPasswordIsToldToAnybody
//	CVE-2026-54680 (logging-operator): a configuration is injected into
//		internal/objects TestNoTextOfASpecReachesAFileOrACommand
//		internal/objects TestNoParameterHasTwoNamesOrALineBreak
//		internal/engine/optionfile FuzzAValueIsReadAsItWas
//		internal/engine/postgresql FuzzASettingIsReadAsItWas
//		internal/engine/redis FuzzAQuotedValueIsReadAsItWas
//	CVE-2025-4057 (ActiveMQ): all instances start with the same credentials
//		internal/controller/databasemanager TestEverySecretIsGivenAPasswordOfItsOwn
//	GHSA-hfc8-w5f4-3x6m (ironic): what users own is changed
//		test/integration TestAForeignObjectOfAChildsNameIsLeftAloneAndNamed
//		internal/plan TestWhoseAnObjectIs
package bugs
