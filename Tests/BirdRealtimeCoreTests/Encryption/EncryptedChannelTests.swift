import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

extension SessionDriver {
    /// Connected, with the vault subscribed as channel 1 under its first secret.
    mutating func openVault() {
        connect(activityTimeout: "86400")
        subscribe(Vault.channel, 1)
        grant(sharedSecret: Vault.secret)
        confirm(Vault.channel)
        _ = take()
    }

    mutating func sealed(_ text: String, _ secret: String = Vault.secret, event: String = "e") {
        edge(event, Vault.channel, data: Vault.seal(text, secret))
    }

    /// Asks for the key of the vault again, by an event that does not open.
    mutating func rotate(_ text: String = "new") { sealed(text, Vault.rotatedSecret) }

    fileprivate var isHoldFull: Bool { session.isHoldFull }
    /// How many events, and their bytes.
    fileprivate var held: [Int] { [session.heldTotal.events, session.heldTotal.bytes] }

    fileprivate var faults: [Fault] {
        events.compactMap {
            if case .decryptionFailed(_, _, _, let fault) = $0 { fault } else { nil }
        }
    }
}

private let failed = "decryption failed 1 e \(BIRD_ERR_DECRYPTION)"

@Suite struct EncryptedChannelTests {
    // MARK: - Subscribing

    @Test func theSecretStaysHere() {
        var driver = SessionDriver()
        driver.connect()
        _ = driver.take()
        driver.subscribe(Vault.channel, 1)
        driver.grant("k:s", sharedSecret: Vault.secret)
        #expect(
            driver.take() == [
                "channel 1 authorizing", "authorize 1 \(Vault.channel) for 1.1", "channel 1 pending",
                "send subscribe \(Vault.channel) k:s",
            ])
        driver.confirm(Vault.channel)
        #expect(driver.take() == ["channel 1 subscribed", "subscribed 1"])
        for case .send(_, let bytes, _) in driver.effects {
            #expect(!String(decoding: bytes, as: UTF8.self).contains("wp8O"))
        }
    }

    @Test func anAnswerWithoutASecretAsksNobody() throws {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe(Vault.channel, 1, operation: 2)
        _ = driver.take()
        driver.grant()
        #expect(
            driver.take() == [
                "channel 1 failed", "subscription failed 1 \(BIRD_ERR_AUTH)", "completed 2 \(BIRD_ERR_AUTH)",
            ])
        guard case .subscriptionFailed(_, let fault, _, false)? = driver.events.dropLast().last else {
            Issue.record("no failure")
            return
        }
        #expect(fault.field == "shared_secret" && fault.message.contains("shared_secret"))
        // As after every denial, a call is enough.
        driver.subscribe(Vault.channel, 1)
        driver.grant(sharedSecret: Vault.secret)
        driver.confirm(Vault.channel)
        #expect(driver.state(of: Vault.channel) == .subscribed)
    }

    @Test func cacheChannelsAreEncryptedToo() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe(Vault.cacheChannel, 1)
        let secret = Vault.sharedSecret(of: Vault.cacheChannel, Vault.masterKey)
        driver.grant(sharedSecret: secret)
        driver.confirm(Vault.cacheChannel)
        _ = driver.take()
        driver.edge("bird:cache_miss", Vault.cacheChannel)
        driver.edge("e", Vault.cacheChannel, data: Vault.seal("1", secret))
        #expect(driver.take() == ["event 1 bird:cache_miss -", "event 1 e 1"])
    }

    @Test("CEV-04: a client sends nothing on an encrypted channel")
    func clientEventsAreRefused() {
        var driver = SessionDriver()
        driver.openVault()
        driver.input(.trigger(ChannelReference(bits: 1), event: "client-x", data: nil))
        #expect(driver.take() == ["client event lost"])
    }

    // MARK: - Events

    @Test func eventsOpenInOrder() {
        var driver = SessionDriver()
        driver.openVault()
        for text in [#"{"balance":1250}"#, #""hello""#, "null", "", "no JSON"] { driver.sealed(text) }
        #expect(
            driver.take() == [
                #"event 1 e {"balance":1250}"#, #"event 1 e "hello""#, "event 1 e null", "event 1 e ",
                "event 1 e no JSON",
            ])
        let kinds = driver.events.compactMap { event -> Bool? in
            guard case .channelEvent(_, _, let data, _) = event else { return nil }
            if case .string = data { return true }
            return false
        }
        #expect(kinds == [true, true, true, true, true])
    }

    @Test func dataMayBeAnObject() {
        var driver = SessionDriver()
        driver.openVault()
        driver.input(
            .message(
                driver.transport,
                InboundMessage(event: "e", channel: Vault.channel, data: .value(Array(Vault.seal("1").utf8)))))
        #expect(driver.take() == ["event 1 e 1"])
    }

    @Test func lifecycleFramesAreNotSealed() {
        var driver = SessionDriver()
        driver.openVault()
        driver.edge("bird_internal:connection_count", Vault.channel, data: #"{"connection_count":5}"#)
        driver.edge("bird:cache_miss", Vault.channel)
        driver.edge("bird_internal:unheard_of", Vault.channel, data: Vault.seal("1"))
        #expect(driver.take() == [#"count 1 {"connection_count":5}"#, "event 1 bird:cache_miss -"])
    }

    @Test func whatNoKeyOpensAsksNobody() {
        var driver = SessionDriver()
        driver.openVault()
        driver.edge("e", Vault.channel, data: #"{"left":4}"#)
        driver.edge("e", Vault.channel)
        #expect(driver.take() == [failed, failed])
        #expect(driver.questions.count == 1)
        #expect(driver.faults[0].field == "data" && driver.faults[0].message.contains("envelope"))
        driver.sealed("1")
        #expect(driver.take() == ["event 1 e 1"])
    }

    // MARK: - Rotation

    @Test func aRotatedKeyIsAskedForOnceAndNothingIsLost() {
        var driver = SessionDriver()
        driver.openVault()
        driver.rotate("1")
        driver.rotate("2")
        driver.edge("e", Vault.channel, data: "garbage")
        for number in 3...50 { driver.rotate("\(number)") }
        #expect(driver.take() == ["key refresh 1", "authorize 2 \(Vault.channel) for 1.1"])
        #expect(driver.state(of: Vault.channel) == .subscribed)
        driver.grant(sharedSecret: Vault.rotatedSecret)
        #expect(driver.take() == ["event 1 e 1", "event 1 e 2", failed] + (3...50).map { "event 1 e \($0)" })
        driver.rotate("51")
        #expect(driver.take() == ["event 1 e 51"])
        #expect(driver.held == [0, 0])
    }

    @Test func otherChannelsDoNotWait() {
        var driver = SessionDriver()
        driver.openVault()
        driver.subscribe("a", 2)
        driver.confirm("a")
        driver.rotate()
        _ = driver.take()
        driver.edge("bird:cache_miss", "a")
        driver.edge("bird_internal:connection_count", Vault.channel, data: #"{"connection_count":5}"#)
        #expect(driver.take() == ["event 2 bird:cache_miss -", #"count 1 {"connection_count":5}"#])
    }

    @Test func anOldEventAfterTheRefreshIsReportedAndAsksNobody() {
        var driver = SessionDriver()
        driver.openVault()
        driver.rotate()
        driver.grant(sharedSecret: Vault.rotatedSecret)
        _ = driver.take()
        for _ in 0..<100 { driver.sealed("old") }
        driver.rotate("next")
        #expect(driver.take() == Array(repeating: failed, count: 100) + ["event 1 e next"])
    }

    @Test func garbageDoesNotMakeTheClientHammerTheAuthorizer() {
        var driver = SessionDriver()
        driver.openVault()
        let garbage = Vault.sharedSecret(of: "another", Vault.masterKey)
        // An hour of it, a thousand times a second's fraction apart; the authorizer gives what it always gave.
        let began = driver.now
        while driver.now - began < 3_600_000 {
            driver.sealed("x", garbage)
            if driver.held[0] > 0 { driver.grant(sharedSecret: Vault.secret) }
            driver.sealed("good")
            driver.advance(777)
        }
        let asked = Int64(driver.questions.count - 1)
        #expect(asked <= 3_600_000 / Session.keyRefreshSpacingMs + 1)
        #expect(asked >= 3_600_000 / (Session.keyRefreshSpacingMs + 777) - 1)
        let lines = driver.take("event")
        #expect(lines.count == driver.faults.count && Set(lines) == ["event 1 e good"])
    }

    // MARK: - Refreshes that fail

    @Test func aDenialLeavesTheOldKey() {
        var driver = SessionDriver()
        driver.openVault()
        driver.rotate()
        driver.sealed("old")
        driver.rotate()
        _ = driver.take()
        driver.refuse()
        #expect(driver.take() == [failed, "event 1 e old", failed])
        let fault = driver.faults[0]
        #expect(fault.status == BIRD_ERR_DECRYPTION && fault.area == .channel && fault.httpStatus == 403)
        #expect(!fault.endpoint.isEmpty && !fault.isRetriable && fault.message.contains(Vault.channel))
        // It is final: neither time nor further events ask again.
        driver.advance(3_600_000)
        driver.rotate()
        driver.sealed("old")
        #expect(driver.take() == [failed, "event 1 e old"])
        // But a call of the program is.
        driver.subscribe(Vault.channel, 1, operation: 7)
        driver.rotate("at last")
        #expect(driver.take() == ["completed 7 0", "key refresh 1", "authorize 3 \(Vault.channel) for 1.1"])
        driver.grant(sharedSecret: Vault.rotatedSecret)
        #expect(driver.take() == ["event 1 e at last"])
    }

    @Test func anAnswerWithoutAKeyIsADenial() {
        var driver = SessionDriver()
        driver.openVault()
        driver.rotate()
        driver.sealed("old")
        _ = driver.take()
        driver.grant(sharedSecret: "c2hvcnQ=")
        #expect(driver.take() == [failed, "event 1 e old"])
        #expect(driver.faults[0].field == "shared_secret" && driver.faults[0].message.contains("shared_secret"))
        driver.advance(3_600_000)
        driver.rotate()
        #expect(driver.take() == [failed])
    }

    @Test func aTransientFailureIsTriedAgainWhileEventsWait() {
        var driver = SessionDriver()
        driver.openVault()
        driver.rotate("1")
        driver.refuse(BIRD_ERR_AUTH, http: 503, isRetriable: true)
        driver.rotate("2")
        driver.advanceToDeadline()
        #expect(driver.take("event") + driver.take("decryption") == [])
        #expect(driver.questions.count == 3)
        driver.grant(sharedSecret: Vault.rotatedSecret)
        #expect(driver.take() == ["event 1 e 1", "event 1 e 2"])
    }

    @Test func eventsWaitNoLongerThanAnAuthorizationMayTake() {
        for http: Int32? in [nil, 503] {
            var driver = SessionDriver { $0.authTimeoutMs = 4_000 }
            driver.openVault()
            let began = driver.now
            driver.rotate()
            driver.sealed("old")
            _ = driver.take()
            while driver.faults.isEmpty, driver.now - began < 100_000 {
                if let http { driver.refuse(BIRD_ERR_AUTH, http: http, isRetriable: true) }
                if driver.faults.isEmpty { driver.advanceToDeadline() }
            }
            #expect(driver.now - began <= 4_000)
            #expect(driver.take().suffix(2) == [failed, "event 1 e old"])
            #expect(driver.faults[0].isRetriable)
            // Now everything goes its way at once, while the authorizer is tried again.
            driver.rotate()
            driver.sealed("old")
            #expect(driver.take() == [failed, "event 1 e old"])
            let asked = driver.questions.count
            driver.advance(120_000)
            #expect(driver.questions.count > asked)
            #expect(driver.take("event") == [])
            driver.advanceToDeadline()
            driver.input(
                .authorization(
                    driver.questions[driver.questions.count - 1].id,
                    .granted(auth: "a", memberData: nil, sharedSecret: ChannelKey(base64: Vault.rotatedSecret))))
            driver.rotate("at last")
            #expect(driver.take("event") == ["event 1 e at last"])
        }
    }

    @Test func aRefreshWaitsForItsPlaceAmongTheAuthorizations() {
        var driver = SessionDriver()
        driver.openVault()
        for number in 2...9 as ClosedRange<UInt64> { driver.subscribe("private-\(number)", number) }
        driver.rotate("1")
        _ = driver.take()
        driver.refuse(question: 1)
        #expect(driver.take("authorize") == ["authorize 10 \(Vault.channel) for 1.1"])
        driver.grant(sharedSecret: Vault.rotatedSecret)
        #expect(driver.take() == ["event 1 e 1"])
    }

    @Test func eventsDoNotWaitForAPlaceForEver() {
        var driver = SessionDriver { $0.authTimeoutMs = 4_000 }
        driver.openVault()
        for number in 2...90 as ClosedRange<UInt64> { driver.subscribe("private-\(number)", number) }
        driver.rotate()
        _ = driver.take()
        driver.advance(4_000)
        #expect(driver.take("decryption") == [failed])
    }

    // MARK: - Ends

    @Test func nothingComesAfterUnsubscribe() {
        var driver = SessionDriver()
        driver.openVault()
        driver.rotate()
        driver.sealed("old")
        _ = driver.take()
        driver.unsubscribe(1)
        #expect(driver.take() == ["send unsubscribe \(Vault.channel)", "withdraw 2", "channel 1 unsubscribed"])
        driver.grant(sharedSecret: Vault.rotatedSecret)
        driver.sealed("late")
        driver.advance(100_000)
        #expect(driver.take() == [])
        #expect(driver.held == [0, 0])
        #expect(driver.questions.count == 2)
    }

    @Test func whatWaitsIsToldBeforeTheEndOfTheConnection() {
        var driver = SessionDriver()
        driver.openVault()
        driver.rotate()
        driver.sealed("old")
        _ = driver.take()
        driver.drop()
        #expect(
            driver.take() == [
                failed, "event 1 e old", "state connected unavailable", "lost", "connecting in", "withdraw 2",
                "channel 1 idle",
            ])
        #expect(driver.faults[0].message.contains("ended"))
        // The answer for that connection is nobody's.
        driver.grant(sharedSecret: Vault.rotatedSecret)
        #expect(driver.take() == [])
        // The next connection has a key of its own.
        driver.advanceToDeadline()
        driver.handshake("2.2")
        driver.grant(sharedSecret: Vault.rotatedSecret)
        driver.confirm(Vault.channel)
        _ = driver.take()
        driver.rotate("1")
        #expect(driver.take() == ["event 1 e 1"])
    }

    @Test func aNewConnectionIDAsksAgain() {
        var driver = SessionDriver()
        driver.openVault()
        driver.rotate("1")
        _ = driver.take()
        driver.edge("bird:connection_established", data: #"{"connection_id":"2.2"}"#)
        #expect(driver.take() == ["withdraw 2", "authorize 3 \(Vault.channel) for 2.2"])
        driver.grant(sharedSecret: Vault.secret, question: 2)
        #expect(driver.take() == [])
        driver.grant(sharedSecret: Vault.rotatedSecret)
        #expect(driver.take() == ["event 1 e 1"])
    }

    @Test func keysEndWithTheirSubscription() throws {
        var driver = SessionDriver()
        driver.openVault()
        func key(_ driver: borrowing SessionDriver) -> ChannelKey? {
            driver.session.key(of: ChannelReference(bits: 1))
        }
        weak let key1 = key(driver)
        #expect(key1 != nil)
        driver.rotate()
        driver.grant(sharedSecret: Vault.rotatedSecret)
        #expect(key1 == nil)
        weak let key2 = key(driver)
        #expect(key2 != nil)
        driver.drop()
        #expect(key2 == nil && key(driver) == nil)
        driver.advanceToDeadline()
        driver.handshake("2.2")
        driver.grant(sharedSecret: Vault.secret)
        driver.confirm(Vault.channel)
        weak let key3 = key(driver)
        #expect(key3 != nil)
        driver.unsubscribe(1)
        #expect(key3 == nil)
    }

    /// An error that seems to be the answer is overtaken by the success.
    @Test func aLateSuccessHasItsKey() {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "86400")
        driver.subscribe(Vault.channel, 1)
        driver.grant(sharedSecret: Vault.secret)
        driver.edgeError()
        driver.advance(2_000)
        #expect(driver.state(of: Vault.channel) == .failed)
        driver.confirm(Vault.channel)
        _ = driver.take()
        driver.sealed("1")
        #expect(driver.take() == ["event 1 e 1"])
    }

    @Test func whatWaitsIsToldBeforeARefusal() {
        var driver = SessionDriver()
        driver.openVault()
        driver.rotate()
        driver.sealed("old")
        _ = driver.take()
        driver.edge("bird_internal:subscription_error", Vault.channel)
        #expect(
            driver.take() == [
                failed, "event 1 e old", "withdraw 2", "channel 1 failed", "subscription failed 1 \(BIRD_ERR_DENIED)",
            ])
        driver.advance(100_000)
        driver.sealed("late")
        #expect(driver.take() == [])
    }

    @Test func keysEndWithTheSession() {
        weak var key: ChannelKey?
        func live() {
            var driver = SessionDriver()
            driver.openVault()
            key = driver.session.key(of: ChannelReference(bits: 1))
            #expect(key != nil)
        }
        live()
        #expect(key == nil)
    }

    // MARK: - Bounds

    @Test func readingRestsWhenTooManyWait() {
        var driver = SessionDriver()
        driver.openVault()
        for number in 1..<Session.heldEventsMax { driver.rotate("\(number)") }
        #expect(driver.isHoldFull == false)
        driver.rotate("last")
        #expect(driver.isHoldFull == true)
        _ = driver.take()
        driver.grant(sharedSecret: Vault.rotatedSecret)
        #expect(driver.isHoldFull == false)
        #expect(driver.take("event").count == Session.heldEventsMax)
    }

    @Test func readingRestsWhenTooMuchWaits() {
        var driver = SessionDriver()
        driver.openVault()
        let text = String(repeating: "x", count: 100_000)
        var sent = 0
        while !driver.isHoldFull {
            driver.rotate(text)
            sent += 1
        }
        #expect(sent == Session.heldBytesMax / (text.utf8.count * 4 / 3) + 1)
        driver.drop()
        #expect(driver.isHoldFull == false && driver.faults.count == sent)
    }

    /// The edge may have answered what is not read.
    @Test func anAnswerBehindEventsThatWaitIsNotMissed() {
        var driver = SessionDriver { $0.answerTimeoutMs = 1_000 }
        driver.openVault()
        driver.subscribe("a", 2, operation: 7)
        for _ in 0..<Session.heldEventsMax { driver.rotate() }
        _ = driver.take()
        driver.advance(5_000)
        #expect(driver.take("completed") == [])
        driver.grant(sharedSecret: Vault.rotatedSecret)
        driver.confirm("a")
        #expect(driver.take("completed") == ["completed 7 0"])
    }

    /// A program that takes nothing of what it is told loses no event by that.
    @Test func aStalledProgramLosesNothing() {
        var driver = SessionDriver { $0.authTimeoutMs = 4_000 }
        driver.openVault()
        driver.session.isStalled = true
        driver.rotate("1")
        driver.advance(1_000_000)
        #expect(driver.take() == ["key refresh 1"])
        driver.session.isStalled = false
        driver.input(.timer)
        #expect(driver.take() == ["authorize 2 \(Vault.channel) for 1.1"])
        driver.grant(sharedSecret: Vault.rotatedSecret)
        #expect(driver.take() == ["event 1 e 1"])
    }
}
