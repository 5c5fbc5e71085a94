import CBirdRealtimeABI

/// What an applicant needs before the edge can be asked, and how it is called in messages.
extension Session {
    enum Requirement {
        case nothing
        case authorization
        case impossible(Fault)
    }

    func requirement(of applicant: Applicant) -> Requirement {
        switch applicant {
        case .signin:
            if configuration.hasMemberAuthorizer { return .authorization }
            return .impossible(
                Fault(
                    BIRD_ERR_AUTH, .signin, field: "member_auth_endpoint",
                    "A signin needs an authorizer: set the option member_auth_endpoint or member_authorizer."))
        case .channel(let slot):
            let channel = channels[slot]
            switch channel.kind {
            case .public, .member:
                return .nothing
            case .private, .presence:
                if configuration.hasChannelAuthorizer { return .authorization }
                return .impossible(
                    Fault(
                        BIRD_ERR_AUTH, .authorization, field: "auth_endpoint",
                        "Subscribing to \(channel.name) needs an authorizer: set the option auth_endpoint or authorizer."
                    ))
            case .encrypted:
                return .impossible(
                    Fault(
                        BIRD_ERR_UNSUPPORTED, .channel, field: "channel",
                        "Subscribing to \(channel.name) needs end-to-end encryption, which this build does not have."))
            }
        }
    }

    /// Why an authorizer's answer cannot be sent to the edge, nil if it can.
    func unusable(auth: String, memberData: String?, _ applicant: Applicant) -> Fault? {
        if auth.isEmpty {
            return Fault(
                BIRD_ERR_AUTH, area(of: applicant), field: "auth",
                "The authorizer's answer for \(title(of: applicant)) has no auth string.")
        }
        if applicant == .signin, memberData?.isEmpty ?? true {
            return Fault(
                BIRD_ERR_AUTH, .signin, field: dialect.identityKey,
                "The authorizer's answer for the signin has no \(dialect.identityKey) string.")
        }
        return nil
    }

    func area(of applicant: Applicant) -> Fault.Area {
        applicant == .signin ? .signin : .channel
    }

    func channelName(of applicant: Applicant) -> String? {
        switch applicant {
        case .signin: nil
        case .channel(let slot): channels[slot].name
        }
    }

    func title(of applicant: Applicant) -> String {
        channelName(of: applicant).map { "the subscription of \($0)" } ?? "the signin"
    }
}
